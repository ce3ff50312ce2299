package trust

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// byPreset returns issuers with an entry of a preset that uses the platform's keys.
func (r *rig) byPreset(t *testing.T, name, issuer string, parameters map[string]string) (*Issuers, storage.TrustEntry) {
	t.Helper()
	r.entries = []storage.TrustEntry{{ID: "e", Issuer: issuer, TrustRules: storage.TrustRules{
		Preset: name, Parameters: parameters, JWKS: published(t, r.platform),
	}}}
	e, err := Check(r.entries[0])
	if err != nil {
		t.Fatal(err)
	}
	return r.issuers(t, nil), e
}

// AS-235: presets accept tokens in the formats of their platforms.
func TestPresets(t *testing.T) {
	r := newRig(t)
	short := claims{"aud": us, "iat": r.now.Unix(), "exp": r.now.Add(10 * time.Minute).Unix()}
	pod := short.with(claims{
		"iss": "https://kubernetes.default.svc.cluster.local", "sub": "system:serviceaccount:prod:bot",
		"aud": []string{us}, "kubernetes.io": claims{
			"namespace": "prod", "serviceaccount": claims{"name": "bot", "uid": "u"}, "pod": claims{"name": "p"},
		},
	})
	build := short.with(claims{
		"iss": "https://token.actions.githubusercontent.com", "sub": "repo:o/r:ref:refs/heads/main", "jti": "j",
		"repository": "o/r", "repository_owner": "o", "repository_id": "74", "ref": "refs/heads/main",
		"ref_type": "branch", "event_name": "push", "job_workflow_ref": "o/r/.github/workflows/x.yml@refs/heads/main",
	})
	job := short.with(claims{
		"iss": "https://gitlab.com", "sub": "project_path:g/p:ref_type:branch:ref:main", "jti": "j", "project_path": "g/p",
		"project_id": "22", "ref": "main", "ref_type": "branch", "ref_path": "refs/heads/main", "ref_protected": "true",
	})
	deployment := func(event string) claims {
		return build.with(claims{"environment": "production", "event_name": event})
	}
	github := map[string]string{"repository": "o/r", "ref": "refs/heads/main"}
	environment := map[string]string{"repository": "o/r", "environment": "production"}
	gitlab := map[string]string{"project": "g/p", "branch": "main", "protected": "true"}
	cluster := map[string]string{"namespace": "prod", "service_account": "bot"}
	spiffe := map[string]string{"spiffe_id": "spiffe://example.org/ns/prod/*"}
	google := map[string]string{"service_account": "bot@p.iam.gserviceaccount.com"}
	aws := map[string]string{"role": "arn:aws:iam::123456789012:role/ci", "account": "123456789012"}
	azure := map[string]string{"tenant": "t", "object_id": "o"}
	svid := short.with(claims{"iss": "https://spire.example", "sub": "spiffe://example.org/ns/prod/bot"})
	self := short.with(claims{"iss": google["service_account"], "sub": google["service_account"]})
	role := short.with(claims{
		"iss": "https://a.tokens.sts.global.api.aws", "sub": aws["role"], "jti": "j",
		"https://sts.amazonaws.com/": claims{"aws_account": "123456789012"},
	})
	managed := short.with(claims{
		"iss": "https://login.microsoftonline.com/t/v2.0", "sub": "o", "oid": "o", "tid": "t", "uti": "x",
		"exp": r.now.Add(24 * time.Hour).Unix(),
	})
	for _, tt := range []struct {
		name, preset string
		parameters   map[string]string
		claims       claims
		want         Rule
		subject      string
	}{
		{"a build", "github-actions", github, build, "", "github:o/r:refs/heads/main"},
		{"a fork", "github-actions", github, build.with(claims{"repository": "evil/r"}), RuleMatch, ""},
		{"another branch", "github-actions", github, build.with(claims{"ref": "refs/heads/x"}), RuleMatch, ""},
		{"a pull request", "github-actions", github, build.with(claims{"ref": "refs/pull/1/merge"}), RuleMatch, ""},
		{"a pull request that names our branch", "github-actions", github,
			build.with(claims{"event_name": "pull_request_target"}), RuleMatch, ""},
		{"a review of a pull request", "github-actions", environment, deployment("pull_request_review"), RuleMatch, ""},
		{"a comment on its code", "github-actions", environment, deployment("pull_request_review_comment"),
			RuleMatch, ""},
		{"a comment on a commit", "github-actions", environment, deployment("commit_comment"), RuleMatch, ""},
		{"another workflow", "github-actions", environment, deployment("workflow_run"), RuleMatch, ""},
		{"a release", "github-actions", environment, deployment("release"), "", "github:o/r:refs/heads/main"},
		{"no event", "github-actions", github, build.with(claims{"event_name": nil}), RuleMatch, ""},
		{"a job", "gitlab-ci", gitlab, job, "", "gitlab:g/p:refs/heads/main"},
		{"a fork", "gitlab-ci", gitlab, job.with(claims{"project_path": "evil/p"}), RuleMatch, ""},
		{"a merge request of a branch of that name", "gitlab-ci", gitlab,
			job.with(claims{"ref_path": "refs/merge-requests/1/head"}), RuleMatch, ""},
		{"a branch that is not protected", "gitlab-ci", gitlab,
			job.with(claims{"ref_protected": "false"}), RuleMatch, ""},
		{"a pod, without jti", "kubernetes", cluster, pod, "", "kubernetes:prod:bot"},
		{"AS-234 a pod, for an hour", "kubernetes", cluster,
			pod.with(claims{"exp": r.now.Add(time.Hour).Unix()}), RuleLifetime, ""},
		{"another namespace", "kubernetes", cluster, pod.with(claims{"kubernetes.io": claims{
			"namespace": "dev", "serviceaccount": claims{"name": "bot"}}}), RuleMatch, ""},
		{"an account of an old kind, that does not expire", "kubernetes", cluster,
			pod.with(claims{"exp": nil}), RuleClaims, ""},
		{"an SVID", "spiffe", spiffe, svid, "", "spiffe://example.org/ns/prod/bot"},
		{"another trust domain", "spiffe", spiffe,
			svid.with(claims{"sub": "spiffe://evil.example/ns/prod/bot"}), RuleMatch, ""},
		{"a service account", "google", google, self, "", "google:bot@p.iam.gserviceaccount.com"},
		{"a role", "aws", aws, role, "", aws["role"]},
		{"a role of another name", "aws", aws, role.with(claims{"sub": aws["role"] + "2"}), RuleMatch, ""},
		{"a managed identity", "azure", azure, managed, "", "azure:o"},
		{"without uti", "azure", azure, managed.with(claims{"uti": nil}), RuleID, ""},
	} {
		t.Run("AS-235 "+tt.preset+": "+tt.name, func(t *testing.T) {
			issuer := ""
			if tt.preset == "kubernetes" || tt.preset == "spiffe" || tt.preset == "aws" {
				issuer = tt.claims["iss"].(string)
			}
			i, _ := r.byPreset(t, tt.preset, issuer, tt.parameters)
			raw := r.platform.sign(t, "JWT", tt.claims)
			a, refused := verify(t, i, raw)
			wantRule(t, refused, tt.want)
			if a.Name != tt.subject {
				t.Errorf("got the name %q, want %q", a.Name, tt.subject)
			}
			report, err := i.Explain(t.Context(), raw)
			if err != nil || report.Accepted != (tt.want == "") || len(report.Entries) != 1 ||
				report.Entries[0].Fits != report.Accepted {
				t.Errorf("AS-235 explained as %+v, %v", report, err)
			}
		})
	}
}

func TestPresetParameters(t *testing.T) {
	for _, tt := range []struct {
		preset     string
		parameters map[string]string
		want       string
	}{
		{"github-actions", map[string]string{"repository": "o/r"}, "needs one of ref, environment, workflow"},
		{"github-actions", map[string]string{"ref": "refs/heads/main"}, "needs repository"},
		{"github-actions", map[string]string{"repository": "*/*", "ref": "refs/heads/main"}, "admits everything"},
		{"github-actions", map[string]string{"repository": "o/r", "ref": "refs/**"}, "admits everything"},
		{"github-actions", map[string]string{"repository": "o/r", "ref": "main"}, "does not begin with refs/"},
		{"github-actions", map[string]string{"repo": "o/r"}, `has no "repo"`},
		{"spiffe", map[string]string{"spiffe_id": "spiffe://**"}, "admits everything"},
		{"okta", map[string]string{"domain": "evil.example/x"}, "part of a URL"},
		{"okta", nil, "needs domain"},
		{"kubernetes", map[string]string{"namespace": "n", "service_account": "s", "in_cluster": "yes"}, "in_cluster"},
		{"other", nil, "preset:"},
	} {
		_, err := Check(storage.TrustEntry{ID: "e", Issuer: "https://i.example", TrustRules: storage.TrustRules{
			Preset: tt.preset, Parameters: tt.parameters,
		}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("AS-235 %s %v: got %v, want %s", tt.preset, tt.parameters, err, tt.want)
		}
	}
	for preset, p := range map[string]map[string]string{
		"okta": {"domain": "a.okta.com"}, "auth0": {"domain": "a.auth0.com"}, "entra": {"tenant": "t"},
		"keycloak": {"domain": "kc.example", "realm": "r"},
	} {
		e, err := Check(storage.TrustEntry{ID: "e", TrustRules: storage.TrustRules{Preset: preset, Parameters: p}})
		if err != nil || e.Kind != Enterprise || !*e.RequireJTI || !strings.HasPrefix(e.Issuer, "https://") {
			t.Errorf("%s: got %+v, %v", preset, e, err)
		}
	}
}

// AS-235: the keys of a cluster are read from an API that requires a token and uses the cluster's
// CA.
func TestKeysOfACluster(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer pod-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Write([]byte(published(t, r.platform)))
	}))
	t.Cleanup(api.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, content := range map[string]string{ca: string(certificate), token: "pod-token\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := r.entries[1]
	e.JWKS, e.JWKSURL, e.CAFile, e.TokenFile = "", api.URL, ca, token
	r.entries = []storage.TrustEntry{e}
	_, refused := verify(t, r.issuers(t, nil), r.platform.sign(t, "", r.build()))
	wantRule(t, refused, "")
	r.entries[0].CAFile = ""
	_, refused = verify(t, r.issuers(t, nil), r.platform.sign(t, "", r.build()))
	if refused == nil || refused.Rule != RuleKeys {
		t.Errorf("without the certificates of the cluster: got %v", refused)
	}
	rules := storage.TrustRules{Preset: "kubernetes", Parameters: map[string]string{
		"namespace": "n", "service_account": "s", "in_cluster": "true",
	}}
	inside, err := Check(storage.TrustEntry{ID: "pods", Issuer: "https://kubernetes.default.svc", TrustRules: rules})
	if err != nil || inside.CAFile != podCA || inside.TokenFile != podToken || len(inside.Networks) == 0 {
		t.Errorf("in the cluster: got %+v, %v", inside, err)
	}
}
