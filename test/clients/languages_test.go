package clients

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// recipes is the directory of the recipes of docs/languages.md, below npmtest.Dir.
const recipes = "languages"

// judges are the recipes that run with packages of Debian and npm. Each refuses with an error of
// its library.
var judges = []struct {
	name    string
	command func(t *testing.T, args ...string) *exec.Cmd
	says    map[string]string // error text by fault of the token
}{
	{"TypeScript, jose", func(t *testing.T, args ...string) *exec.Cmd {
		return npmtest.Command(t, "node", append([]string{recipes + "/run.ts"}, args...)...)
	}, map[string]string{
		"expired": "ERR_JWT_EXPIRED", "audience": `unexpected "aud" claim`, "issuer": `unexpected "iss" claim`,
		"typ": `unexpected "typ" JWT header`, "signature": "ERR_JWS_SIGNATURE_VERIFICATION_FAILED",
		"algorithm": "ERR_JOSE_ALG_NOT_ALLOWED", "key": "ERR_JWKS_NO_MATCHING_KEY", "claim": "missing required",
		"bound": "bound to a key", "form": "ERR_JWS_INVALID",
	}},
	{"Python, PyJWT", python, map[string]string{
		"expired": "ExpiredSignatureError", "audience": "InvalidAudienceError", "issuer": "InvalidIssuerError",
		"typ": "typ is not", "signature": "InvalidSignatureError", "algorithm": "InvalidAlgorithmError",
		"key": "PyJWKClientError", "claim": "MissingRequiredClaimError", "bound": "bound to a key",
		"form": "DecodeError",
	}},
}

// python runs a recipe with a Python that has PyJWT, which is a Debian package.
func python(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import jwt, cryptography").Run() == nil {
			cmd := exec.CommandContext(t.Context(), name, append([]string{"-B", recipes + "/run.py"}, args...)...)
			cmd.Dir = npmtest.Dir(t)
			return cmd
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("PyJWT is not installed: apt-get install python3-jwt python3-cryptography")
	}
	t.Skip("PyJWT is not installed: apt-get install python3-jwt python3-cryptography")
	return nil
}

// foreign is our server with an MCP server in another language. The MCP server verifies tokens
// itself at one URL, and is behind the gateway at another.
type foreign struct {
	*demotest.Demo
	address string
	mcpURL  string // where it verifies tokens itself
	inner   string // where the gateway calls it
	data    string
	secret  string // of the client desk
}

func newForeign(t *testing.T) *foreign {
	t.Helper()
	f := &foreign{address: nettest.For(t)}
	f.mcpURL, f.inner = "http://"+f.address+"/mcp", "http://"+f.address+"/inner"
	f.start(t)
	return f
}

// start starts our server, which knows both URLs of the MCP server.
func (f *foreign) start(t *testing.T) {
	t.Helper()
	const resource = `scopes:
  - {name: mcp, description: use it, default: true}
  - {name: "notes:write", description: add notes}
tools: [{name: add_note, scopes: ["notes:write"]}]`
	f.Demo = demotest.StartGateway(t, f.inner, "", resource,
		demotest.Options{Env: []string{"MCP_AUTHD_TOKENS_STATUS_TTL=1s"}})
	written, err := os.ReadFile(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	f.data = regexp.MustCompile(`(?m)^data_dir: (.*)$`).FindStringSubmatch(string(written))[1]
	f.run(t, "resource", "add", f.mcpURL, "--scope", "mcp=use it", "--scope", "notes:write=add notes")
	var desk struct{ Secret string }
	added := f.run(t, "client", "add", "--id", "desk", "--name", "Desk", "--scope", "openid", "--scope", "mcp",
		"--scope", "notes:write", "--auth-method", "client_secret_basic", "--redirect-uri", deskRedirect, "--json")
	if err := json.Unmarshal([]byte(added), &desk); err != nil || desk.Secret == "" {
		t.Fatalf("%v: %s", err, added)
	}
	f.secret = desk.Secret
	wait.Until(t, "the server knows of the MCP server", func() bool {
		out, err := metadata(f.Issuer)
		return err == nil && strings.Contains(out, f.mcpURL)
	})
}

const deskRedirect = "http://localhost:3142/callback"

// run runs an operator command.
func (f *foreign) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(program.Authd(t), append(args, "--config", f.Config)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// tokens signs in a user, and returns the token response for a resource.
func (f *foreign) tokens(t *testing.T, resource, scope string) map[string]string {
	t.Helper()
	const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
	back, err := f.Person().Visit(f.Issuer + "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {"desk"}, "redirect_uri": {deskRedirect}, "state": {"s"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.S256},
		"resource": {resource}, "scope": {scope},
	}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "code_verifier": {verifier},
		"redirect_uri": {deskRedirect},
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.Issuer+"/token",
		strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("desk", f.secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out := map[string]any{}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s after %s: %v %v", resp.Status, back, out, err)
	}
	got := map[string]string{}
	for name, value := range out {
		got[name], _ = value.(string)
	}
	return got
}

// signer returns the server's signing keys, for tokens that differ in only one respect.
func (f *foreign) signer(t *testing.T) *keys.Manager {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(f.data, "mcp-authd.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	secret, err := keys.SecretFile(filepath.Join(f.data, "secret.key"), filepath.Join(f.data, "mcp-authd.db"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := keys.New(t.Context(), keys.Config{Store: store, SecretKeys: [][]byte{secret}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wrong is a token that must be refused, and its fault.
type wrong struct{ name, because, token string }

// spoilt returns tokens that differ from a good one in one respect.
func spoilt(t *testing.T, m *keys.Manager, good, typ, other string) (all []wrong) {
	t.Helper()
	part := func(s string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	encode := base64.RawURLEncoding.EncodeToString
	parts := strings.Split(good, ".")
	var header, claims map[string]any
	if json.Unmarshal(part(parts[0]), &header) != nil || json.Unmarshal(part(parts[1]), &claims) != nil {
		t.Fatalf("got %s", good)
	}
	signed := func(typ, name string, value any) string {
		changed := maps.Clone(claims)
		if changed[name] = value; value == nil {
			delete(changed, name)
		}
		token, err := m.Sign(t.Context(), typ, changed)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	headed := func(name string, value any) string {
		changed := maps.Clone(header)
		changed[name] = value
		b, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		return encode(b) + "." + parts[1]
	}
	add := func(name, because, token string) { all = append(all, wrong{name, because, token}) }
	add("expired a minute ago", "expired", signed(typ, "exp", time.Now().Add(-time.Minute).Unix()))
	add("without an end", "claim", signed(typ, "exp", nil))
	add("for another server", "audience", signed(typ, "aud", "https://other.example.com/mcp"))
	add("for a longer URL", "audience", signed(typ, "aud", claims["aud"].(string)+"/"))
	add("of another issuer", "issuer", signed(typ, "iss", "https://other.example.com"))
	add("of nobody", "claim", signed(typ, "sub", nil))
	bound := map[string]string{"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"} // RFC 9449 §6.1
	add("bound to a key", "bound", signed(typ, "cnf", bound))
	add("of the type JWT", "typ", signed("JWT", "jti", "1"))
	add("of the type "+other, "typ", signed(other, "jti", "1"))
	tampered := part(parts[2])
	tampered[len(tampered)-1] ^= 1
	add("with another signature", "signature", parts[0]+"."+parts[1]+"."+encode(tampered))
	b, err := json.Marshal(map[string]any{"scope": "admin", "exp": claims["exp"], "sub": claims["sub"],
		"client_id": claims["client_id"], "iss": claims["iss"], "aud": claims["aud"]})
	if err != nil {
		t.Fatal(err)
	}
	add("with more scope", "signature", parts[0]+"."+encode(b)+"."+parts[2])
	add("of the algorithm none", "algorithm", headed("alg", "none")+".")
	mac := headed("alg", "HS256")
	sum := hmac.New(sha256.New, []byte(header["kid"].(string)))
	sum.Write([]byte(mac))
	add("of an algorithm with a shared secret", "algorithm", mac+"."+encode(sum.Sum(nil)))
	add("by an unknown key", "key", headed("kid", "unknown")+"."+parts[2])
	return append(all, wrong{"in two parts", "form", parts[0] + "." + parts[1]})
}

// judged gives tokens to a recipe and returns its verdicts.
func judged(t *testing.T, cmd *exec.Cmd, tokens ...string) (all []verdict) {
	t.Helper()
	cmd.Stdin, cmd.Stderr = strings.NewReader(strings.Join(tokens, "\n")+"\n"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		all = append(all, v)
	}
	if len(all) != len(tokens) {
		t.Fatalf("it judged %d of %d tokens:\n%s", len(all), len(tokens), out)
	}
	return all
}

type verdict struct {
	Claims map[string]any
	Error  string
}

// gatewayToken returns the identity token that the gateway sends with a call.
func gatewayToken(t *testing.T, f *foreign) string {
	t.Helper()
	seen := make(chan string, 1)
	inner := &http.Server{Addr: f.address, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case seen <- r.Header.Get("X-MCP-Identity"):
		default:
		}
		w.WriteHeader(http.StatusAccepted)
	})}
	go inner.ListenAndServe()
	defer inner.Close()
	token := f.tokens(t, f.MCPURL, "mcp")["access_token"]
	wait.Until(t, "the gateway hands on who calls", func() bool {
		postTo(t, f.MCPURL, token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return len(seen) > 0
	})
	return <-seen
}

// postTo sends a message and returns the response.
func postTo(t *testing.T, to, token, message string) (*http.Response, string) {
	t.Helper()
	return postIn(t, "", to, token, message)
}

// postIn is postTo in a session; "" for none.
func postIn(t *testing.T, session, to, token, message string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Authorization": "Bearer " + token, "Mcp-Protocol-Version": "2025-06-18",
	} {
		req.Header.Set(name, value)
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestLanguages: issue 17, 6. It tests the recipes of docs/languages.md with tokens of a real
// server.
func TestLanguages(t *testing.T) {
	npmtest.Dir(t) // skips if the packages are missing
	f := newForeign(t)
	mine := f.tokens(t, f.mcpURL, "openid mcp")
	m := f.signer(t)
	identity := gatewayToken(t, f)
	const access, inner = "at+jwt", "mcp-identity+jwt"
	for _, j := range judges {
		t.Run(j.name, func(t *testing.T) {
			for _, kind := range []struct{ id, typ, other, audience, good string }{
				{"RS-33 RS-37 RS-42 access token", access, inner, f.mcpURL, mine["access_token"]},
				{"RS-49 identity token", inner, access, f.inner, identity},
			} {
				t.Run(kind.id, func(t *testing.T) {
					bad := spoilt(t, m, kind.good, kind.typ, kind.other)
					bad = append(bad, wrong{"a real ID token", "", mine["id_token"]})
					tokens := []string{kind.good}
					for _, w := range bad {
						tokens = append(tokens, w.token)
					}
					said := judged(t, j.command(t, f.Issuer, kind.audience, kind.typ), tokens...)
					if c := said[0].Claims; c["client_id"] != "desk" || c["sub"] == nil || c["scope"] != "mcp" {
						t.Errorf("of a good token it says %+v", said[0])
					}
					for i, w := range bad {
						v := said[i+1]
						if v.Claims != nil || v.Error == "" || !strings.Contains(v.Error, j.says[w.because]) {
							t.Errorf("one %s: got %+v, want %q", w.name, v, j.says[w.because])
						}
					}
				})
			}
		})
	}
}
