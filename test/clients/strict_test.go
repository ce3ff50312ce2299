package clients

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// strict tests a client based on oauth4webapi, which is strict about the protocol: with each
// authentication method, and without users.
func strict(t *testing.T, l *life) {
	if l.document != "" {
		for _, v := range documentMethods {
			t.Run(v.name, func(t *testing.T) { l.strictByDocument(t, v) })
		}
		return
	}
	for _, v := range append(documentMethods, secretMethods...) {
		t.Run("AS-118 AS-132 AS-150 AS-226 "+v.name, func(t *testing.T) { l.strictByRequest(t, v) })
	}
	for _, v := range append(documentMethods[1:], secretMethods...) {
		t.Run("AS-171 AS-177 AS-227 without people: "+v.name, func(t *testing.T) { l.strictMachine(t, v) })
	}
}

// method is an authentication method. alg is for private_key_jwt.
type method struct {
	name, method string
	alg          jose.SignatureAlgorithm
}

var (
	documentMethods = []method{
		{"AS-134 none", "none", ""},
		{"AS-123 AS-159 private_key_jwt with ES256", "private_key_jwt", jose.ES256},
		{"AS-123 AS-159 private_key_jwt with EdDSA", "private_key_jwt", jose.EdDSA},
		{"AS-123 AS-159 private_key_jwt with RS256", "private_key_jwt", jose.RS256},
	}
	secretMethods = []method{
		{"AS-89 client_secret_basic", "client_secret_basic", ""},
		{"AS-88 client_secret_post", "client_secret_post", ""},
	}
)

func (l *life) strictByRequest(t *testing.T, v method) {
	told := l.told(v)
	if v.alg != "" {
		private, public := newKey(t, v.alg)
		told["key"], told["registration"] = private, map[string]any{"jwks": public}
	}
	l.people(t, told, "registers", "reads its registration", "replaces its registration", "deletes its registration")
}

func (l *life) strictByDocument(t *testing.T, v method) {
	told := l.told(v)
	url := strings.TrimSuffix(l.document, ".json") + "-" + string(v.alg) + ".json"
	told["document"] = url
	more := map[string]any{"token_endpoint_auth_method": v.method}
	if v.alg != "" {
		private, public := newKey(t, v.alg)
		keys := strings.TrimSuffix(url, ".json") + "-jwks.json"
		told["key"], more["jwks_uri"] = private, keys
		set, err := json.Marshal(public)
		if err != nil {
			t.Fatal(err)
		}
		l.web.Publish(keys, set)
		t.Cleanup(func() {
			if l.web.Fetches(keys) == 0 {
				t.Errorf("%s was never fetched, so no token was verified", keys)
			}
		})
	}
	l.publish(t, url, more)
	l.people(t, told)
	if l.web.Fetches(url) == 0 || registerRequest.MatchString(l.Log()) {
		t.Errorf("%s was fetched %d times, or there was a registration", url, l.web.Fetches(url))
	}
}

// strictMachine tests a client that the operator creates while the server runs.
func (l *life) strictMachine(t *testing.T, v method) {
	told := l.told(v)
	args := []string{
		"client", "add", "--name", "Robot", "--grant", "client_credentials", "--auth-method", v.method, "--resource",
		l.MCPURL, "--scope", "mcp", "--json", "--data", l.data,
	}
	if v.alg != "" {
		private, public := newKey(t, v.alg)
		told["key"] = private
		file := filepath.Join(t.TempDir(), "keys.json")
		set, err := json.Marshal(public)
		if err == nil {
			err = os.WriteFile(file, set, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--jwks", file)
	}
	cmd := exec.CommandContext(t.Context(), program.Authd(t), args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "MCP_AUTHD_ISSUER="+l.Issuer), io.Discard
	out, err := cmd.Output()
	var made struct {
		ID     string `json:"id"`
		Secret string `json:"secret,omitempty"`
	}
	if err == nil {
		err = json.Unmarshal(out, &made)
	}
	if err != nil || made.ID == "" {
		t.Fatalf("client add: %v %s", err, out)
	}
	told["machine"] = made
	l.steps(t, told,
		map[string]*string{
			"discovers": nil, "calls a tool": &l.row.calls, "introspects": nil, "revokes": &l.row.revokes,
		})
}

func (l *life) told(v method) map[string]any {
	return map[string]any{"issuer": l.Issuer, "resource": l.MCPURL, "method": v.method}
}

// people tests a client with user sign-in. more are additional steps that not all such clients
// have.
func (l *life) people(t *testing.T, told map[string]any, more ...string) {
	t.Helper()
	in := &l.row.byDocument
	if told["document"] == nil {
		in = &l.row.byRequest
	}
	want := map[string]*string{
		"discovers": nil, "signs in": in, "calls a tool": &l.row.calls, "steps up": &l.row.stepsUp,
		"refreshes": &l.row.refreshes, "revokes": &l.row.revokes,
	}
	if told["method"] != "none" {
		want["introspects"] = nil
	}
	for _, name := range more {
		want[name] = nil
	}
	l.steps(t, told, want)
}

// steps runs the script once, and records the result of each required step.
func (l *life) steps(t *testing.T, told map[string]any, want map[string]*string) {
	t.Helper()
	b, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tryRun(t, newPerson(t, l.Demo), npmtest.Command(t, "node", "clients/oauth4webapi.mjs", string(b)))
	if err != nil {
		t.Errorf("%v", err)
	}
	done := strings.Split(out, "\n")
	for _, name := range slices.Sorted(maps.Keys(want)) {
		outcome := "yes"
		if !slices.Contains(done, "step: "+name) {
			t.Errorf("it got no further than %q, and not to %q", done, name)
			outcome = "no"
		}
		if cell := want[name]; cell != nil && *cell != "no" {
			*cell = outcome
		}
	}
}

// newKey returns a key: private for the client and public for the server.
func newKey(t *testing.T, alg jose.SignatureAlgorithm) (private jose.JSONWebKey, public jose.JSONWebKeySet) {
	t.Helper()
	var key crypto.Signer
	var err error
	switch alg {
	case jose.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case jose.RS256:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	private = jose.JSONWebKey{Key: key, KeyID: "k1", Algorithm: string(alg), Use: "sig"}
	return private, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{private.Public()}}
}
