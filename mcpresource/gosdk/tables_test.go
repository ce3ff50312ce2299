package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestSecondCheckOfTables bypasses the guard, like a body that guard and SDK read differently: the
// decoded call is checked with the same tables.
func TestSecondCheckOfTables(t *testing.T) {
	g, err := mcpresource.New(mcpresource.Config{
		Resource: "http://localhost/mcp", AuthorizationServers: []string{issuer},
		Validator: mcpresource.ValidatorFunc(
			func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
				return nil, mcpresource.ErrInvalidToken
			}),
		Policy: &mcpresource.Rules{
			Base: []string{"mcp"}, Default: []string{"admin"}, Prompts: map[string][]string{"hello": {}},
			Resources: map[string][]string{"file:///public/*": {}},
		},
		Check: func(_ context.Context, p *mcpresource.Principal, op mcpresource.Operation) error {
			if op.Name == "file:///public/bobs" && p.Subject != "bob" {
				return errors.New("bob keeps it in 10.0.0.7")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"reached"}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "file:///{+path}", Name: "f"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "reached"}}}, nil
		})
	for _, name := range []string{"hello", "secret"} {
		s.AddPrompt(&mcp.Prompt{Name: name},
			func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Description: "reached"}, nil
			})
	}
	h := Unguarded(g, s, nil)
	serve := func(method, params string) string {
		var named struct{ Name, URI string }
		json.Unmarshal([]byte("{"+params+"}"), &named)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := &mcpresource.Principal{
			Issuer: issuer, Subject: "alice", ClientID: "app", Scopes: []string{"mcp"},
			ExpiresAt: time.Now().Add(time.Hour),
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,` + modernMeta + `}}`
		req := httptest.NewRequest(http.MethodPost, "/mcp",
			strings.NewReader(body)).WithContext(mcpresource.NewContext(ctx, p))
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": named.Name + named.URI,
		} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		w := &stopper{httptest.NewRecorder(), cancel}
		h.ServeHTTP(w, req)
		return w.Body.String()
	}
	for _, tt := range []struct{ name, method, params, want string }{
		{"RS-190 completion of a prompt that may be got", "completion/complete",
			`"ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":"a","value":""}`, "reached"},
		{"RS-190 completion of another prompt", "completion/complete",
			`"ref":{"type":"ref/prompt","name":"secret"},"argument":{"name":"a","value":""}`, "insufficient_scope"},
		{"RS-190 completion of a resource that may be read", "completion/complete",
			`"ref":{"type":"ref/resource","uri":"file:///public/{x}"},"argument":{"name":"x","value":""}`, "reached"},
		{"RS-190 completion of another resource", "completion/complete",
			`"ref":{"type":"ref/resource","uri":"file:///{+path}"},"argument":{"name":"path","value":""}`,
			"insufficient_scope"},
		{"RS-43 a prompt that may be got", "prompts/get", `"name":"hello"`, "reached"},
		{"RS-43 another prompt", "prompts/get", `"name":"secret"`, "insufficient_scope"},
		{"RS-43 a tool that no table names", "tools/call", `"name":"none","arguments":{}`, "insufficient_scope"},
		{"RS-195 listening to a resource that may be read", "subscriptions/listen",
			`"notifications":{"resourceSubscriptions":["file:///public/a"]}`, "acknowledged"},
		{"RS-195 listening to another one among them", "subscriptions/listen",
			`"notifications":{"resourceSubscriptions":["file:///public/a","file:///private/x"]}`, "insufficient_scope"},
		{"RS-194 reading by another spelling", "resources/read", `"uri":"file:///public/%2E./private/x"`, "-32602"},
		{"RS-194 listening by another spelling", "subscriptions/listen",
			`"notifications":{"resourceSubscriptions":["file:///public/../private/x"]}`, "-32602"},
		{"RS-36 reading what is somebody else's", "resources/read", `"uri":"file:///public/bobs"`,
			`"This operation is not permitted."`},
		{"RS-195 reading what may be read", "resources/read", `"uri":"file:///public/a"`, "reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := serve(tt.method, tt.params); !strings.Contains(got, tt.want) ||
				tt.want != "reached" && strings.Contains(got, "reached") {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// stopper ends the request after its first event, because listening does not end by itself.
type stopper struct {
	*httptest.ResponseRecorder
	stop context.CancelFunc
}

func (s *stopper) Write(b []byte) (int, error) {
	defer s.stop()
	return s.ResponseRecorder.Write(b)
}
