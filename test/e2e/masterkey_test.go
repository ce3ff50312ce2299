package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// rollout is two servers on one PostgreSQL whose master keys change one after the other.
type rollout struct {
	t       *testing.T
	config  string
	address [2]string
	server  [2]*exec.Cmd
	log     [2]*logtest.Buffer
}

func newRollout(t *testing.T) *rollout {
	r := &rollout{
		t: t, config: filepath.Join(t.TempDir(), "mcp-authd.yaml"), address: [2]string{nettest.For(t), nettest.For(t)},
	}
	yaml := "issuer: http://" + r.address[0] + "\ndata_dir: " + t.TempDir() + "\nmanagement: {listen: \"\"}\n" +
		"database: {url: \"" + pgtest.Start(t).Database(t) + "\"}\n" +
		"resources: [{uri: \"http://127.0.0.1:9/mcp\", name: R, scopes: [{name: mcp, description: use it, default: true}]}]\n"
	if err := os.WriteFile(r.config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for i := range r.server {
			r.stop(i)
		}
	})
	return r
}

// command returns the binary with master keys, the primary first.
func (r *rollout) command(masters []string, args ...string) *exec.Cmd {
	c := exec.Command(program.Authd(r.t), append(args, "--config", r.config)...)
	c.Env = append(os.Environ(), "MCP_AUTHD_SECRET_KEY="+masters[0],
		"MCP_AUTHD_SECRET_KEY_OLD="+strings.Join(masters[1:], ","))
	return c
}

// step runs a part of the test.
func (r *rollout) step(name string, f func(t *testing.T)) {
	outer := r.t
	defer func() { r.t = outer }()
	outer.Run(name, func(t *testing.T) {
		r.t = t
		f(t)
	})
}

func (r *rollout) output(masters []string, args ...string) string {
	r.t.Helper()
	out, err := r.command(masters, args...).Output()
	if err != nil {
		r.t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

func (r *rollout) stop(i int) {
	r.t.Helper()
	if r.server[i] == nil {
		return
	}
	_ = r.server[i].Process.Signal(syscall.SIGTERM) // Wait returns the error
	if err := r.server[i].Wait(); err != nil {
		r.t.Errorf("server %d did not exit with 0: %v\n%s", i, err, r.log[i])
	}
	r.server[i] = nil
}

// restart starts or restarts a server with these master keys.
func (r *rollout) restart(i int, masters ...string) {
	r.t.Helper()
	r.stop(i)
	r.log[i] = &logtest.Buffer{}
	r.server[i] = r.command(masters, "serve")
	r.server[i].Env = append(r.server[i].Env, "MCP_AUTHD_LISTEN="+r.address[i])
	r.server[i].Stderr = r.log[i]
	if err := r.server[i].Start(); err != nil {
		r.t.Fatal(err)
	}
	demotest.Ready(r.t, "http://"+r.address[i], r.log[i])
}

// application is a client with its credentials.
type application struct {
	id, secret, refresh string
}

func (r *rollout) register(i int, method string) *application {
	r.t.Helper()
	body, _ := json.Marshal(map[string]any{
		"client_name": "app", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": method,
	})
	resp, err := http.Post("http://"+r.address[i]+"/register", "application/json", bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	var out struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(answer, &out); err != nil || out.ID == "" {
		r.t.Fatalf("registration: %s %s", resp.Status, answer)
	}
	return &application{id: out.ID, secret: out.Secret}
}

func (a *application) form(grant string, more ...string) url.Values {
	v := url.Values{"grant_type": {grant}, "client_id": {a.id}}
	if a.secret != "" {
		v.Set("client_secret", a.secret)
	}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

// signIn signs in a user at server 0, which is the issuer. It redeems the code at server i and
// returns the access token.
func (r *rollout) signIn(p *demotest.Person, a *application, i int) string {
	r.t.Helper()
	d := &demotest.Demo{Issuer: "http://" + r.address[0], MCPURL: "http://127.0.0.1:9/mcp"}
	back, err := p.Visit(d.Issuer + "/authorize?" + authorizeQuery(r.t, d, a.id).Encode())
	if err != nil {
		r.t.Fatal(err)
	}
	return r.take(a, i,
		a.form("authorization_code", "code", back.Query().Get("code"), "code_verifier", verifier, "redirect_uri",
			redirect))
}

// refresh uses the refresh token at server i.
func (r *rollout) refresh(a *application, i int) string {
	r.t.Helper()
	return r.take(a, i, a.form("refresh_token", "refresh_token", a.refresh))
}

func (r *rollout) take(a *application, i int, form url.Values) string {
	r.t.Helper()
	status, out := post(r.t, "http://"+r.address[i]+"/token", form)
	if status != http.StatusOK {
		r.t.Fatalf("server %d: %s: got %d %v", i, form.Get("grant_type"), status, out)
	}
	a.refresh = out["refresh_token"].(string)
	return out["access_token"].(string)
}

// good checks access tokens like a resource server with an empty cache.
func (r *rollout) good(tokens ...string) {
	r.t.Helper()
	for i, token := range tokens {
		v, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{Issuer: "http://" + r.address[0]})
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := v.Validate(r.t.Context(), mcpresource.Credential{Token: token}); err != nil {
			r.t.Errorf("token %d: %v", i, err)
		}
	}
}

// TestMasterKeyChange follows "Changing the master key" of docs/operating/keys.md, while users and
// clients are active between its steps.
func TestMasterKeyChange(t *testing.T) {
	r := newRollout(t)
	before, after := strings.Repeat("old-key-", 5), strings.Repeat("new-key-", 5)
	add := r.command([]string{before}, "user", "add", "alice", "--password-stdin")
	add.Stdin = strings.NewReader("correct horse battery")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.restart(0, before)
	r.restart(1, before)
	alice := demotest.NewPerson("alice", "correct horse battery")
	public, confidential, unused := r.register(0, "none"), r.register(1, "client_secret_post"), r.register(0, "none")
	tokens := []string{r.signIn(alice, public, 1), r.signIn(alice, confidential, 0)}
	pages := len(alice.Pages)

	r.step("while every replica learns the new key, and then seals under it, everything goes on", func(t *testing.T) {
		for _, step := range []struct {
			server  int
			masters []string
		}{{0, []string{before, after}}, {1, []string{before, after}}, {0, []string{after, before}},
			{1, []string{after, before}}} {
			r.restart(step.server, step.masters...)
			for i := range 2 {
				spent := *public
				tokens = append(tokens, r.refresh(public, i), r.refresh(confidential, i))
				if r.refresh(&spent, 1-i); spent.refresh != public.refresh {
					t.Error("a replayed refresh at the other replica gave another successor")
				}
				// One replica knows the registrations and sign-ins of the other.
				tokens = append(tokens, r.signIn(alice, r.register(i, "none"), 1-i))
			}
		}
		r.good(tokens...)
	})
	r.step("the person was never asked to sign in again", func(t *testing.T) {
		for _, page := range alice.Pages[pages:] {
			if strings.Contains(page, `name="password"`) {
				t.Fatal("a page asked for the password")
			}
		}
	})
	if t.Failed() {
		return
	}

	r.step("without the old key the database is refused until it was moved", func(t *testing.T) {
		out, err := r.command([]string{after}, "keys", "list").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "secret rotate") {
			t.Errorf("got %v: %s", err, out)
		}
	})
	if out := r.output([]string{after, before}, "secret", "rotate"); !strings.Contains(out, "sealed again: 1") {
		t.Errorf("got %s", out)
	}
	if out := r.output([]string{after, before}, "secret", "rotate"); !strings.Contains(out, "sealed again: 0") {
		t.Errorf("again: got %s", out)
	}
	tokens = append(tokens, r.refresh(public, 0), r.refresh(confidential, 1))
	r.restart(0, after)
	r.restart(1, after)
	r.step("without the old key: signing keys, refresh tokens and clients with a row", func(t *testing.T) {
		for i := range 2 {
			tokens = append(tokens, r.refresh(public, i), r.refresh(confidential, i))
		}
		tokens = append(tokens, r.signIn(demotest.NewPerson("alice", "correct horse battery"), public, 1))
		r.good(tokens...)
	})
	r.step("a client that was never used to sign in registers again", func(t *testing.T) {
		status, out := post(t, "http://"+r.address[0]+"/token", unused.form("refresh_token", "refresh_token", "x"))
		if status != http.StatusUnauthorized || out["error"] != "invalid_client" {
			t.Errorf("got %d %v", status, out)
		}
	})
	r.step("the old key alone is refused", func(t *testing.T) {
		if out, err := r.command([]string{before}, "keys", "list").CombinedOutput(); err == nil {
			t.Errorf("got %s", out)
		}
	})
}
