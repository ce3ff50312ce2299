package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const agentSecret = "ssssssssssssssssssssssssssssssssssssssss"

const trustConfig = `issuer: ISSUER
data_dir: DIR
secret_key: kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
DATABASE
resources: [{uri: "RESOURCE", name: R, scopes: [{name: mcp, description: use it, default: true}]}]
tokens: {status_ttl: 1s}
clients: [{id: agent, name: Agent, secret: ` + agentSecret + `, auth_method: client_secret_basic,
  grant_types: ["urn:ietf:params:oauth:grant-type:jwt-bearer"]}]
`

const trustEntries = `trust:
- {id: ci, preset: github-actions, parameters: {repository: o/r, ref: refs/heads/main}, jwks_file: DIR/github}
- {id: okta, preset: okta, parameters: {domain: acme.okta.com}, jwks_file: DIR/okta, create_people: true}
- {id: auth0, preset: auth0, parameters: {domain: acme.auth0.com}, jwks_file: DIR/auth0, create_people: true}
- {id: kc, preset: keycloak, parameters: {domain: kc.acme.example, realm: staff}, jwks_file: DIR/kc, create_people: true}
`

// trusting is replicas with trusted issuers, and an MCP server behind a separate guard.
type trusting struct {
	t                *testing.T
	dir, config      string
	issuer, resource string
	replicas         []*replica
}

// newTrusting starts one server on SQLite, or one per address on a database. The keys of each
// issuer are in a file.
func newTrusting(
	t *testing.T, entries, database string, addresses []string, issuers map[string]*fakeissuer.Issuer,
) *trusting {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	x := &trusting{t: t, dir: t.TempDir(), issuer: "http://" + addresses[0], resource: s.URL + "/mcp"}
	for name, i := range issuers {
		x.write(name, i.JWKS())
	}
	if database != "" {
		database = `database: {url: "` + database + `"}`
	}
	x.config = x.write("mcp-authd.yaml", strings.NewReplacer("ISSUER", x.issuer, "DIR", x.dir, "RESOURCE", x.resource,
		"DATABASE", database).Replace(trustConfig+entries))
	for _, a := range addresses {
		x.replicas = append(x.replicas, startReplica(t, x.config, a))
	}
	guardWhoami(t, mux, mcpresource.Config{Resource: x.resource, AuthorizationServers: []string{x.issuer}})
	return x
}

func (x *trusting) write(name, content string) string {
	x.t.Helper()
	path := filepath.Join(x.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		x.t.Fatal(err)
	}
	return path
}

// run runs an operator command.
func (x *trusting) run(args ...string) string {
	x.t.Helper()
	out, err := exec.Command(program.Authd(x.t), append(args, "--config", x.config)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// asJob returns the request of a workload without a client. asAgent returns the request of the
// client agent.
func (x *trusting) asJob(assertion string) url.Values {
	return url.Values{"grant_type": {oauth.GrantJWTBearer}, "assertion": {assertion}, "resource": {x.resource}}
}

func (x *trusting) asAgent(assertion string) url.Values {
	v := x.asJob(assertion)
	v.Set("client_id", "agent")
	v.Set("client_secret", agentSecret)
	v.Del("resource")
	return v
}

// token gets a token that the guard accepts.
func (x *trusting) token(form url.Values) string {
	x.t.Helper()
	status, out := post(x.t, x.issuer+"/token", form)
	token, _ := out["access_token"].(string)
	if status != http.StatusOK || out["refresh_token"] != nil {
		x.t.Fatalf("got %d %v, want an access token alone", status, out)
	}
	if got := x.call(token); got != http.StatusOK {
		x.t.Fatalf("the guard answers %d", got)
	}
	return token
}

func (x *trusting) call(token string) int {
	return callWhoami(x.t, &demotest.Demo{MCPURL: x.resource}, token)
}

func (x *trusting) wantRefused(form url.Values) {
	x.t.Helper()
	if status, out := post(x.t, x.issuer+"/token", form); status != http.StatusBadRequest ||
		out["error"] != "invalid_grant" {
		x.t.Errorf("got %d %v, want invalid_grant", status, out)
	}
}

// ends waits until the guard refuses a token.
func (x *trusting) ends(token string) {
	x.t.Helper()
	x.soon("the guard refuses the token", func() bool { return x.call(token) == http.StatusUnauthorized })
}

// soon waits until f returns true.
func (x *trusting) soon(what string, f func() bool) {
	x.t.Helper()
	wait.Until(x.t, what, f)
}

// offered returns which grant type and profile for assertions the metadata list.
func (x *trusting) offered() (grant, profile bool) {
	x.t.Helper()
	resp, err := http.Get(x.issuer + "/.well-known/oauth-authorization-server")
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		Grants   []string `json:"grant_types_supported"`
		Profiles []string `json:"authorization_grant_profiles_supported"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		x.t.Fatal(err)
	}
	return slices.Contains(out.Grants, oauth.GrantJWTBearer), slices.Contains(out.Profiles, oauth.ProfileIDJAG)
}

// users returns the names of all accounts.
func (x *trusting) users() (names []string) {
	x.t.Helper()
	var list []struct{ Name string }
	if err := json.Unmarshal([]byte(x.run("user", "list", "--json")), &list); err != nil {
		x.t.Fatal(err)
	}
	for _, u := range list {
		names = append(names, u.Name)
	}
	return names
}

// nextSecond waits for the next second. Tokens from then on are later than earlier events, because
// iat has no fractions.
func nextSecond(t *testing.T) {
	t.Helper()
	now := time.Now().Unix()
	wait.Until(t, "a second begins", func() bool { return time.Now().Unix() > now })
}

// TestTrustOfTheConfiguration checks that assertions in the form of real issuers are exchanged for
// tokens that a resource server accepts.
func TestTrustOfTheConfiguration(t *testing.T) {
	issuers := map[string]*fakeissuer.Issuer{
		"github": fakeissuer.New(t, "https://token.actions.githubusercontent.com", "g", time.Now),
		"okta":   fakeissuer.New(t, "https://acme.okta.com", "o", time.Now),
		"auth0":  fakeissuer.New(t, "https://acme.auth0.com/", "a", time.Now),
		"kc":     fakeissuer.New(t, "https://kc.acme.example/realms/staff", "k", time.Now),
	}
	x := newTrusting(t, trustEntries, "", []string{nettest.For(t)}, issuers)
	t.Run("AS-180 AS-198 the metadata say so", func(t *testing.T) {
		if grant, profile := x.offered(); !grant || !profile {
			t.Errorf("got %v %v", grant, profile)
		}
	})
	jag := func(issuer string, c fakeissuer.Claims) url.Values {
		return x.asAgent(issuers[issuer].Sign(fakeissuer.IDJAG, c))
	}
	for name, form := range map[string]url.Values{
		"AS-197 GitHub Actions": x.asJob(
			issuers["github"].Sign("JWT", issuers["github"].GitHub(x.issuer, "o/r", "refs/heads/main"))),
		"AS-179 AS-186 Okta, without a resource": jag("okta", issuers["okta"].Okta(x.issuer, "agent", "ada")),
		"AS-179 AS-187 Okta, without a scope": jag("okta",
			issuers["okta"].Okta(x.issuer, "agent", "bob").With(fakeissuer.Claims{"scope": nil})),
		"AS-179 Auth0, with a slash": jag("auth0", issuers["auth0"].Auth0(x.issuer, "agent", "ada", x.resource)),
		"AS-179 Keycloak, a list of resources": jag("kc",
			issuers["kc"].Keycloak(x.issuer, "agent", "ada", x.resource, "https://other.example/mcp")),
	} {
		t.Run(name, func(t *testing.T) {
			x.token(form)
			x.wantRefused(form) // AS-188
		})
	}
	t.Run("AS-232 an entry of the configuration that is disabled", func(t *testing.T) {
		job := func() url.Values {
			return x.asJob(issuers["github"].Sign("JWT", issuers["github"].GitHub(x.issuer, "o/r", "refs/heads/main")))
		}
		token := x.token(job())
		x.run("trust", "disable", "ci")
		x.ends(token)
		x.wantRefused(job())
	})
}

// TestTrustAtRunTime adds, disables and enables issuers while the server runs.
func TestTrustAtRunTime(t *testing.T) {
	ci := fakeissuer.New(t, "https://token.actions.githubusercontent.com", "g", time.Now)
	company := fakeissuer.New(t, "https://id.acme.example", "k", time.Now)
	x := newTrusting(t, "", "", []string{nettest.For(t)},
		map[string]*fakeissuer.Issuer{"github": ci, "company": company})
	job := func() url.Values { return x.asJob(ci.Sign("JWT", ci.GitHub(x.issuer, "o/r", "refs/heads/main"))) }
	jag := func() url.Values {
		return x.asAgent(company.Sign(fakeissuer.IDJAG,
			company.Auth0(x.issuer, "agent", "ada", x.resource).With(fakeissuer.Claims{"sub": "ada"})))
	}
	if grant, profile := x.offered(); grant || profile {
		t.Errorf("AS-180 before the first entry: got %v %v", grant, profile)
	}
	if _, out := post(t, x.issuer+"/token", job()); out["error"] != "unsupported_grant_type" {
		t.Errorf("RU-21 before the first entry: got %v", out)
	}
	x.run("trust", "add", "ci", "--preset", "github-actions", "--set", "repository=o/r",
		"--set", "ref=refs/heads/main", "--jwks", filepath.Join(x.dir, "github"))
	x.soon("AS-180 the metadata offer the grant, and no profile", func() bool {
		grant, profile := x.offered()
		return grant && !profile
	})
	x.run("trust", "add", "company", "--kind", "enterprise", "--issuer", company.URL,
		"--jwks", filepath.Join(x.dir, "company"), "--create-people", "--email-domain", "acme.example")
	x.soon("AS-180 the metadata offer both", func() bool {
		grant, profile := x.offered()
		return grant && profile
	})
	t.Run("AS-232 an entry that is disabled ends its tokens, and enabling revives none", func(t *testing.T) {
		x := x.of(t)
		token, other, unused := x.token(job()), x.token(jag()), job()
		x.run("trust", "disable", "ci")
		x.wantRefused(job())
		x.ends(token)
		nextSecond(t)
		x.run("trust", "enable", "ci")
		x.soon("the entry is trusted again", func() bool {
			status, _ := post(t, x.issuer+"/token", job())
			return status == http.StatusOK
		})
		if a, b := x.call(token), x.call(other); a != http.StatusUnauthorized || b != http.StatusOK {
			t.Errorf("the guard answers %d, and %d for another entry", a, b)
		}
		x.wantRefused(unused) // it was issued before
		x.token(job())
	})
	t.Run("AS-232 a person who is disabled", func(t *testing.T) {
		x := x.of(t)
		token, other, unused := x.token(jag()), x.token(job()), jag()
		if got := x.users(); !slices.Equal(got, []string{"ada@acme.example"}) {
			t.Fatalf("got %q", got)
		}
		x.run("user", "disable", "ada@acme.example")
		x.wantRefused(jag())
		x.ends(token)
		x.run("user", "enable", "ada@acme.example")
		if a, b := x.call(token), x.call(other); a != http.StatusUnauthorized || b != http.StatusOK {
			t.Errorf("the guard answers %d, and %d for a workload", a, b)
		}
		x.wantRefused(unused)
		nextSecond(t)
		token, unused = x.token(jag()), jag()
		x.run("grant", "revoke", "--user", "ada@acme.example", "--yes")
		x.ends(token)
		x.wantRefused(unused)
		nextSecond(t)
		x.token(jag())
	})
	t.Run("AS-180 the metadata after the last entry", func(t *testing.T) {
		x := x.of(t)
		x.run("trust", "remove", "ci")
		x.run("trust", "remove", "company")
		x.soon("nothing is offered", func() bool {
			grant, profile := x.offered()
			return !grant && !profile
		})
	})
}

// of returns the same for a subtest.
func (x *trusting) of(t *testing.T) *trusting {
	out := *x
	out.t = t
	return &out
}

// TestTrustOverReplicas sends one assertion to two replicas concurrently.
func TestTrustOverReplicas(t *testing.T) {
	okta := fakeissuer.New(t, "https://acme.okta.com", "o", time.Now)
	x := newTrusting(t, `trust: [{id: okta, preset: okta, parameters: {domain: acme.okta.com},
  jwks_file: DIR/okta, create_people: true}]`, pgtest.Start(t).Database(t),
		[]string{nettest.For(t), nettest.For(t)}, map[string]*fakeissuer.Issuer{"okta": okta})
	claims := okta.Okta(x.issuer, "agent", "ada")
	form := x.asAgent(okta.Sign(fakeissuer.IDJAG, claims))
	begin := make(chan struct{})
	var mu sync.Mutex // guards answers
	answers := map[string]int{}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			<-begin
			status, out := post(t, x.replicas[i%2].at("/token"), form)
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint(status, " ", out["error"])]++
		})
	}
	close(begin)
	wg.Wait()
	if answers["200 <nil>"] != 1 || answers["400 invalid_grant"] != 31 {
		t.Errorf("AS-188: got %v, want one winner and 31 invalid_grant", answers)
	}
	if got := x.users(); len(got) != 1 {
		t.Errorf("AS-192: got the accounts %q, want one", got)
	}
	replay := x.asAgent(okta.Sign(fakeissuer.IDJAG, claims.With(fakeissuer.Claims{"sub": "eve"})))
	for _, r := range x.replicas {
		if status, out := post(t, r.at("/token"), replay); out["error"] != "invalid_grant" {
			t.Errorf("AS-188 the same id for another person: got %d %v", status, out)
		}
	}
	if got := x.users(); len(got) != 1 {
		t.Errorf("AS-188: a replay has created an account: %q", got)
	}
}
