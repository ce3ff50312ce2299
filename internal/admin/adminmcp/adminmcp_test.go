package adminmcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/adminmcp"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const issuer = "https://auth.example.com"

// rig is the server, listening on a port. The test issues its tokens.
type rig struct {
	*testing.T
	*installation.Clock
	root    string
	store   storage.Store
	service *admin.Service
	tokens  map[string]*mcpresource.Principal
	calls   []mcpresource.CallEvent
}

func newRig(t *testing.T, two ...string) *rig {
	t.Helper()
	loaded, err := config.Load(config.Source{Environ: []string{"HOME=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	store := installation.Store(t)
	service, err := assembly.Parts{
		Config: loaded, Store: store, Keys: [][]byte{make([]byte, 32)}, Log: slog.New(slog.DiscardHandler),
	}.Admin(nil)
	if err != nil {
		t.Fatal(err)
	}
	service.Two = two
	r := &rig{
		T: t, Clock: installation.NewClock(), store: store, service: service,
		tokens: map[string]*mcpresource.Principal{},
	}
	r.Set(time.Now())
	service.Now = r.Now
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	r.root = web.URL + "/mcp/admin"
	server, err := adminmcp.New(adminmcp.Config{
		Root: r.root, Service: service, Callers: api.Callers{Store: store, Clients: store},
		Guard: mcpresource.Config{
			AuthorizationServers: []string{issuer}, Now: r.Now, Validator: mcpresource.ValidatorFunc(r.validate),
			Calls: func(_ context.Context, e mcpresource.CallEvent) { r.calls = append(r.calls, e) },
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = server.Register(mux)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) validate(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
	if p, ok := r.tokens[c.Token]; ok {
		return p, nil
	}
	return nil, mcpresource.ErrInvalidToken
}

// person creates a user with a role, and returns a visit with a token. The user authenticated the
// given time ago.
func (r *rig) person(name string, role admin.Role, scopes string, ago time.Duration) *visit {
	r.Helper()
	u, err := r.service.Users.Add(r.Context(), users.Account{
		Name: name, Password: "correct horse battery", Role: role,
	})
	if err != nil {
		r.Fatal(err)
	}
	r.tokens[name] = &mcpresource.Principal{
		Issuer: issuer, Subject: u.ID, ClientID: "assistant", Scopes: oauth.ParseScopes(scopes),
		Audience: []string{r.root}, ExpiresAt: r.Now().Add(time.Hour),
		Claims: json.RawMessage(fmt.Sprintf(`{"gid":"grt_1","auth_time":%d}`, r.Now().Add(-ago).Unix())),
	}
	return r.visit(name)
}

// visit is a session of the SDK's own client, with its last response.
type visit struct {
	*rig
	token     string
	session   *mcp.ClientSession
	status    int
	challenge string
}

func (r *rig) visit(token string) *visit {
	r.Helper()
	v := &visit{rig: r, token: token}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(r.Context(),
		&mcp.StreamableClientTransport{Endpoint: r.root, HTTPClient: &http.Client{Transport: v}, MaxRetries: -1}, nil)
	if err == nil {
		r.Cleanup(func() { session.Close() })
	}
	v.session = session
	return v
}

// RoundTrip adds the token.
func (v *visit) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+v.token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil && req.Method == http.MethodPost {
		v.status, v.challenge = resp.StatusCode, resp.Header.Get("WWW-Authenticate")
	}
	return resp, err
}

func (v *visit) tools() (names []string) {
	v.Helper()
	list, err := v.session.ListTools(v.Context(), nil)
	if err != nil {
		v.Fatal(err)
	}
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names
}

// call calls a tool. The result is nil if the guard refuses the call.
func (v *visit) call(tool string, args map[string]any) (result *mcp.CallToolResult) {
	v.Helper()
	for {
		var err error
		result, err = v.session.CallTool(v.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err == nil || v.status != http.StatusTooManyRequests {
			return result
		}
		v.Advance(time.Second) // the rate limit permits another call
	}
}

func text(r *mcp.CallToolResult) string { return r.Content[0].(*mcp.TextContent).Text }

func toolName(s admin.Spec) string { return strings.NewReplacer(" ", "_", "-", "_").Replace(s.Name) }

// secret lists the operations that show or take a secret.
var secret = []string{
	"client add", "client rotate-secret", "proposal accept", "token inspect", "user add", "user invite", "user passwd",
	"user recover",
}

// TestMatrix checks that role, scope and authentication time decide which tools are listed and can
// be called (OB-11).
func TestMatrix(t *testing.T) {
	r := newRig(t)
	const read, write = "admin:read", "admin:write"
	n := 0
	for _, role := range []admin.Role{admin.Administrator, admin.Auditor, admin.Support} {
		for _, c := range []struct {
			scopes  string
			ago     time.Duration
			changes bool
		}{
			{read, time.Minute, false},
			{write, time.Minute, true},
			{write, admin.FreshFor + time.Minute, false},
		} {
			n++
			v := r.person(fmt.Sprintf("person%d", n), role, c.scopes, c.ago)
			want := []string{"why"}
			for _, verb := range admin.All() {
				spec := verb.Spec()
				if slices.Contains(secret, spec.Name) {
					continue
				}
				permitted := spec.Permits(role)
				if permitted && (c.changes || !spec.Changes()) {
					want = append(want, toolName(spec))
				}
				result := v.call(toolName(spec), needed(verb))
				switch {
				case spec.Changes() && c.scopes == read:
					if result != nil || v.status != 403 || !strings.Contains(v.challenge, write) ||
						!strings.Contains(v.challenge, `error="insufficient_scope"`) {
						t.Errorf("OB-11: %s with %s: %d %s, want 403 insufficient_scope", spec.Name, c.scopes, v.status,
							v.challenge)
					}
				case spec.Changes() && !c.changes:
					if result != nil || v.status != 401 || !strings.Contains(v.challenge, `max_age="600"`) ||
						!strings.Contains(v.challenge, `error="insufficient_user_authentication"`) {
						t.Errorf("OB-11: %s with an old proof: %d %s, want 401", spec.Name, v.status, v.challenge)
					}
				case result == nil:
					t.Errorf("OB-11: %s as %s: %d %s", spec.Name, role, v.status, v.challenge)
				case !permitted && (!result.IsError || !strings.Contains(text(result), "role of the person")):
					t.Errorf("OB-11: %s as %s: %s", spec.Name, role, text(result))
				case permitted && result.IsError && role != admin.Support &&
					strings.Contains(text(result), "role of the person"):
					t.Errorf("OB-11: %s as %s: %s", spec.Name, role, text(result))
				}
			}
			if !c.changes && role != admin.Auditor {
				want = append(want, "allow_changes")
			}
			slices.Sort(want)
			if got := v.tools(); !slices.Equal(got, want) {
				t.Errorf("OB-11: %s with %s is shown %v, want %v", role, c.scopes, got, want)
			}
		}
	}
}

// needed returns arguments that match the schema of a tool and name no existing object.
func needed(v admin.Verb) map[string]any {
	schema := api.Schema(v.Input(), true)
	out := map[string]any{}
	names, _ := schema["required"].([]string)
	for _, name := range names {
		property := schema["properties"].(map[string]any)[name].(map[string]any)
		switch property["type"] {
		case "array":
			out[name] = []string{}
		case "boolean":
			out[name] = false
		case "integer", "number":
			out[name] = 0
		default:
			out[name] = "nothing"
		}
	}
	return out
}

// TestWhoGetsIn checks that callers without a role, or without a token for this server, see nothing
// (OB-11).
func TestWhoGetsIn(t *testing.T) {
	r := newRig(t)
	if v := r.person("bob", "", "admin:write", time.Minute); v.session != nil || v.status != 403 {
		t.Errorf("no role: got %d, want 403", v.status)
	}
	if v := r.person("mia", admin.Administrator, "mcp", time.Minute); v.session != nil || v.status != 403 ||
		!strings.Contains(v.challenge, `scope="admin:read`) {
		t.Errorf("another scope: got %d %s, want 403", v.status, v.challenge)
	}
	if v := r.visit("unknown"); v.session != nil || v.status != 401 ||
		!strings.Contains(v.challenge, `scope="admin:read"`) {
		t.Errorf("no good token: got %d %s, want 401 with admin:read alone", v.status, v.challenge)
	}
	root := r.person("root", admin.Administrator, "admin:read", time.Minute)
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.root, nil)
	if err != nil {
		t.Fatal(err)
	}
	get.Header.Set("Accept", "text/event-stream")
	if resp, err := root.RoundTrip(get); err != nil || resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
		t.Errorf("OB-11: a stream: %+v, %v, want 405", resp, err)
	}
	r.person("other", admin.Administrator, "admin:read", time.Minute)
	if err := r.service.Users.SetRole(t.Context(), "root", ""); err != nil {
		t.Fatal(err)
	}
	if result := root.call("user_list", nil); result != nil || root.status != 403 {
		t.Errorf("the role was taken away: got %d, want 403", root.status)
	}
}
