package trust

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// preset contains defaults for a known kind of issuer. Fields of the entry take precedence, except
// that its rules about claims are added to the preset's.
type preset struct {
	id      string
	kind    Kind
	issuer  string // may contain {parameter}; "": the entry must set it
	keysURL string // may contain {parameter}; "": from the issuer's metadata
	// parameters restrict the assertions to those that the administrator intends. One parameter of
	// each group in oneOf is required.
	parameters []parameter
	oneOf      [][]string
	match      []storage.TrustMatch // always required
	subject    string
	maxTTL     time.Duration
	withoutJTI bool   // its assertions may lack jti
	resubmit   bool   // its platform returns the same assertion until it expires
	idClaim    string // name of the jti claim
}

// parameter is a parameter of a preset.
type parameter struct {
	name     string
	claim    string // claim to compare; "": part of a URL, or an option
	value    string // required value of the claim, with {} for the parameter; "": the parameter itself
	required bool
	prefix   string // required prefix of the parameter
}

// noPulls excludes pull requests: events whose workflow or code may be a stranger's, although they
// name a branch of the repository.
const noPulls = `claims.event_name != nil && !(claims.event_name startsWith "pull_request" || ` +
	`claims.event_name endsWith "_comment" || claims.event_name == "workflow_run")`

const (
	// Files in a pod with the credentials for its cluster.
	podCA    = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
	podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token" // #nosec G101 -- a path
)

var privateNetworks = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}

var presets = []preset{
	{
		id: "github-actions", kind: Workload, issuer: "https://token.actions.githubusercontent.com",
		parameters: []parameter{
			{name: "repository", claim: "repository", required: true},
			{name: "ref", claim: "ref", prefix: "refs/"},
			{name: "environment", claim: "environment"},
			{name: "workflow", claim: "job_workflow_ref"},
			{name: "repository_id", claim: "repository_id"},
			{name: "event", claim: "event_name"},
		},
		oneOf:   [][]string{{"ref", "environment", "workflow"}},
		subject: "github:{{.repository}}:{{.ref}}",
	},
	{
		id: "gitlab-ci", kind: Workload, issuer: "https://gitlab.com",
		parameters: []parameter{
			{name: "project", claim: "project_path", required: true},
			// ref alone can also be the source branch of a merge request.
			{name: "branch", claim: "ref_path", value: "refs/heads/{}"},
			{name: "tag", claim: "ref_path", value: "refs/tags/{}"},
			{name: "environment", claim: "environment"},
			{name: "project_id", claim: "project_id"},
			{name: "protected", claim: "ref_protected"},
		},
		oneOf:   [][]string{{"branch", "tag", "environment"}},
		subject: "gitlab:{{.project_path}}:{{.ref_path}}",
	},
	{
		id: "kubernetes", kind: Workload,
		parameters: []parameter{
			{name: "namespace", claim: "kubernetes.io.namespace", required: true},
			{name: "service_account", claim: "kubernetes.io.serviceaccount.name", required: true},
			{name: "in_cluster"},
		},
		match:      []storage.TrustMatch{{Claim: "sub", Glob: "system:serviceaccount:*:*"}},
		subject:    "kubernetes:{{.kubernetes.io.namespace}}:{{.kubernetes.io.serviceaccount.name}}",
		withoutJTI: true,
	},
	{
		id: "spiffe", kind: Workload,
		parameters: []parameter{{name: "spiffe_id", claim: "sub", required: true, prefix: "spiffe://"}},
		subject:    "{{.sub}}", withoutJTI: true,
	},
	{
		id: "google", kind: Workload, issuer: "{service_account}",
		keysURL:    "https://www.googleapis.com/service_accounts/v1/jwk/{service_account}",
		parameters: []parameter{{name: "service_account", claim: "sub", required: true}},
		subject:    "google:{{.sub}}", withoutJTI: true,
	},
	{
		id: "aws", kind: Workload,
		parameters: []parameter{
			{name: "role", claim: "sub", required: true, prefix: "arn:"},
			{name: "account", claim: "https://sts.amazonaws.com/.aws_account"},
		},
		subject: "{{.sub}}",
	},
	{
		id: "azure", kind: Workload, issuer: "https://login.microsoftonline.com/{tenant}/v2.0",
		parameters: []parameter{
			{name: "tenant", claim: "tid", required: true}, {name: "object_id", claim: "oid", required: true},
		},
		subject: "azure:{{.oid}}", maxTTL: maxMaxTTL, resubmit: true, idClaim: "uti",
	},
	{
		id: "okta", kind: Enterprise, issuer: "https://{domain}",
		parameters: []parameter{{name: "domain", required: true}},
	},
	{
		id: "auth0", kind: Enterprise, issuer: "https://{domain}/",
		parameters: []parameter{{name: "domain", required: true}},
	},
	{
		id: "keycloak", kind: Enterprise, issuer: "https://{domain}/realms/{realm}",
		parameters: []parameter{{name: "domain", required: true}, {name: "realm", required: true}},
	},
	{
		id: "entra", kind: Enterprise, issuer: "https://login.microsoftonline.com/{tenant}/v2.0",
		parameters: []parameter{{name: "tenant", claim: "tid", required: true}},
	},
}

// Presets returns the names of the presets.
func Presets() (out []string) {
	for _, p := range presets {
		out = append(out, p.id)
	}
	return out
}

// inURL matches a parameter value that can be part of a URL.
var inURL = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._@:-]*\z`)

// apply fills in the defaults of the entry's preset.
func (e *entry) apply() error {
	if e.Preset == "" {
		if len(e.Parameters) > 0 {
			return errors.New("parameters: mean nothing without a preset")
		}
		return nil
	}
	i := slices.IndexFunc(presets, func(p preset) bool { return p.id == e.Preset })
	if i < 0 {
		return fmt.Errorf("preset: %q is not one of %s", e.Preset, strings.Join(Presets(), ", "))
	}
	p := presets[i]
	if e.Kind != "" && e.Kind != p.kind {
		return fmt.Errorf("kind: the preset %s is for %s entries", p.id, p.kind)
	}
	if err := p.check(e.Parameters); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	e.Kind = p.kind
	if e.Issuer == "" {
		e.Issuer = p.fill(p.issuer, e.Parameters)
	}
	if e.JWKSURL == "" && e.JWKSFile == "" && e.JWKS == "" {
		e.JWKSURL = p.fill(p.keysURL, e.Parameters)
	}
	e.Match = append(p.matches(e.Parameters), e.Match...)
	e.Subject = cmp.Or(e.Subject, p.subject)
	if e.RequireJTI == nil && p.withoutJTI {
		e.RequireJTI = new(bool)
	}
	e.MaxTTL = cmp.Or(e.MaxTTL, p.maxTTL)
	e.Resubmit = e.Resubmit || p.resubmit
	e.idClaim = cmp.Or(p.idClaim, e.idClaim)
	return e.inCluster()
}

// inCluster configures the key location of the cluster that this server runs in.
func (e *entry) inCluster() error {
	switch e.Parameters["in_cluster"] {
	case "":
		return nil
	case "true":
	default:
		return errors.New("parameters: in_cluster is true, or missing")
	}
	if e.JWKSURL != "" || e.JWKSFile != "" || e.JWKS != "" {
		return errors.New("parameters: in_cluster finds the keys; leave jwks_url and jwks_file out")
	}
	e.JWKSURL = "https://kubernetes.default.svc/openid/v1/jwks"
	e.CAFile, e.TokenFile = cmp.Or(e.CAFile, podCA), cmp.Or(e.TokenFile, podToken)
	if len(e.Networks) == 0 {
		e.Networks = privateNetworks
	}
	return nil
}

// check validates the parameters. A value that matches everything is refused.
func (p preset) check(given map[string]string) error {
	for name, v := range given {
		i := slices.IndexFunc(p.parameters, func(one parameter) bool { return one.name == name })
		if i < 0 {
			return fmt.Errorf("%s has no %q; it has %s", p.id, name, strings.Join(p.names(), ", "))
		}
		one := p.parameters[i]
		switch {
		case strings.Trim(strings.TrimPrefix(v, one.prefix), "*?/:. ") == "" || len(v) > maxPattern/2:
			return fmt.Errorf("%s: %q admits everything, or is too long", name, v)
		case !strings.HasPrefix(v, one.prefix):
			return fmt.Errorf("%s: %q does not begin with %s", name, v, one.prefix)
		case strings.Contains(p.issuer+p.keysURL, "{"+name+"}") && !inURL.MatchString(v):
			return fmt.Errorf("%s: %q cannot be a part of a URL", name, v)
		}
	}
	for _, one := range p.parameters {
		if one.required && given[one.name] == "" {
			return fmt.Errorf("%s needs %s", p.id, one.name)
		}
	}
	for _, group := range p.oneOf {
		if !slices.ContainsFunc(group, func(name string) bool { return given[name] != "" }) {
			return fmt.Errorf("%s needs one of %s", p.id, strings.Join(group, ", "))
		}
	}
	return nil
}

func (p preset) names() (out []string) {
	for _, one := range p.parameters {
		out = append(out, one.name)
	}
	return out
}

func (p preset) fill(text string, given map[string]string) string {
	for name, v := range given {
		text = strings.ReplaceAll(text, "{"+name+"}", v)
	}
	return text
}

// matches returns the rules from the parameters. A value with a star or a question mark is a glob.
func (p preset) matches(given map[string]string) []storage.TrustMatch {
	out := slices.Clone(p.match)
	for _, one := range p.parameters {
		v := given[one.name]
		if v == "" || one.claim == "" {
			continue
		}
		m := storage.TrustMatch{Claim: one.claim, Equals: strings.ReplaceAll(cmp.Or(one.value, "{}"), "{}", v)}
		if strings.ContainsAny(v, "*?") {
			m.Equals, m.Glob = "", m.Equals
		}
		out = append(out, m)
	}
	if p.id == "github-actions" && given["event"] == "" {
		out = append(out, storage.TrustMatch{Expression: noPulls})
	}
	return out
}
