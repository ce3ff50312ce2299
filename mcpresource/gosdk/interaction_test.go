package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const connectURL = "https://auth.example.com/connect/abc"

// needySealer lets tests read the state of conversations.
var needySealer, _ = mcpresource.NewSealer()

// needy returns a server whose tool, prompt and resource need an upstream token, which becomes
// available after some calls.
func needy(t *testing.T, patience int64) (r *rig, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	token := func() error {
		if calls.Add(1) > patience {
			return nil
		}
		return fmt.Errorf("reading the list: %w",
			&mcpresource.InteractionRequiredError{Provider: "github", URL: connectURL})
	}
	mux := http.NewServeMux()
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)
	g, err := mcpresource.New(mcpresource.Config{
		Resource: host.URL + "/mcp", AuthorizationServers: []string{issuer},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				return &mcpresource.Principal{
					Issuer: issuer, Subject: "alice", ClientID: "app", Audience: []string{host.URL + "/mcp"},
					ExpiresAt: time.Now().Add(time.Hour)}, nil
			}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "repos"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "three repositories"}}}, nil,
				token()
		})
	s.AddPrompt(&mcp.Prompt{Name: "repos"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, token()
	})
	s.AddResource(&mcp.Resource{URI: "repo:///x", Name: "x"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "repo:///x", Text: "x"}}}, token()
		})
	g.Register(mux, Unguarded(g, s, &Options{interactionPoll: time.Millisecond, State: needySealer}))
	return &rig{Server: host}, calls
}

// person is a client whose user gives the same answer to every question; "" means that it cannot
// show links.
func person(t *testing.T, r *rig, version, says string, questions *[]mcp.ElicitParams) *mcp.ClientSession {
	t.Helper()
	o := &mcp.ClientOptions{}
	if says != "" {
		o.Capabilities = &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}},
		}
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			*questions = append(*questions, *r.Params)
			return &mcp.ElicitResult{Action: says}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: r.URL + "/mcp", HTTPClient: r.client("alice"), DisableStandaloneSSE: true, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

func TestInteractionOf20251125(t *testing.T) {
	r, _ := needy(t, 1<<40)
	t.Run("RS-79 RS-133 RS-198 a client that shows links gets URLElicitationRequired", func(t *testing.T) {
		var asked []mcp.ElicitParams
		cs := person(t, r, protocol.Rev20251125, "accept", &asked)
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "repos"})
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) || rpc.Code != -32042 {
			t.Fatalf("got %v", err)
		}
		var data struct{ Elicitations []mcp.ElicitParams }
		if json.Unmarshal(rpc.Data, &data) != nil || len(data.Elicitations) != 1 {
			t.Fatalf("got %s", rpc.Data)
		}
		q := data.Elicitations[0]
		if q.Mode != "url" || q.URL != connectURL || len(q.ElicitationID) < 20 ||
			!strings.Contains(q.Message, "github") {
			t.Errorf("got %+v", q)
		}
		for _, err := range []error{
			second(cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "repos"})),
			second(cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "repo:///x"})),
		} {
			if !errors.As(err, &rpc) || rpc.Code != -32042 {
				t.Errorf("got %v", err)
			}
		}
	})
	for _, version := range []string{protocol.Rev20251125, "2025-06-18"} {
		t.Run("RS-125 RS-79 another client gets the link as text: "+version, func(t *testing.T) {
			var asked []mcp.ElicitParams
			cs := person(t, r, version, "", &asked)
			checkText(t, cs)
			if err := second(cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "repos"})); err == nil ||
				!strings.Contains(err.Error(), connectURL) || strings.Contains(err.Error(), "-32042") {
				t.Errorf("a prompt: got %v", err)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func checkText(t *testing.T, cs *mcp.ClientSession) {
	t.Helper()
	result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "repos"})
	if err != nil || !result.IsError || len(result.Content) != 1 ||
		!strings.Contains(result.Content[0].(*mcp.TextContent).Text, connectURL) {
		t.Errorf("got %+v %v", result, err)
	}
}

func TestInteractionOf20260728(t *testing.T) {
	t.Run("RS-178 RS-184 RS-204 the client asks, comes back, and the call waits for the person", func(t *testing.T) {
		var asked []mcp.ElicitParams
		r, calls := needy(t, 5)
		cs := person(t, r, protocol.Rev20260728, "accept", &asked)
		result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "repos"})
		if err != nil || result.IsError || result.Content[0].(*mcp.TextContent).Text != "three repositories" {
			t.Fatalf("got %+v %v", result, err)
		}
		if len(asked) != 1 || asked[0].URL != connectURL || asked[0].Mode != "url" || asked[0].ElicitationID != "" ||
			calls.Load() != 6 {
			t.Errorf("asked %+v, %d calls", asked, calls.Load())
		}
	})
	t.Run("RS-178 prompts and resources too", func(t *testing.T) {
		var asked []mcp.ElicitParams
		r, _ := needy(t, 1)
		cs := person(t, r, protocol.Rev20260728, "accept", &asked)
		if err := second(cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "repos"})); err != nil {
			t.Error(err)
		}
		r, _ = needy(t, 1)
		cs = person(t, r, protocol.Rev20260728, "accept", &asked)
		if err := second(cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "repo:///x"})); err != nil {
			t.Error(err)
		}
		if len(asked) != 2 {
			t.Errorf("asked %+v", asked)
		}
	})
	for _, says := range []string{"decline", "cancel"} {
		t.Run("RS-184 a person who does not want to is asked once: "+says, func(t *testing.T) {
			var asked []mcp.ElicitParams
			r, _ := needy(t, 1<<40)
			checkText(t, person(t, r, protocol.Rev20260728, says, &asked))
			if len(asked) != 1 {
				t.Errorf("asked %d times", len(asked))
			}
		})
	}
	t.Run("RS-180 a client that shows no links gets text", func(t *testing.T) {
		var asked []mcp.ElicitParams
		r, _ := needy(t, 1<<40)
		checkText(t, person(t, r, protocol.Rev20260728, "", &asked))
	})
	t.Run("RS-171 RS-179 the form on the wire", func(t *testing.T) {
		r, _ := needy(t, 1<<40)
		alice := &mcpresource.Principal{Issuer: issuer, Subject: "alice", ClientID: "app"}
		const call = `["tools/call","repos",{}]`
		sealed := needySealer.Seal(alice, call, []byte("the tool's own"), time.Minute)
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"repos","arguments":{},"requestState":"` +
			sealed + `","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}}}`
		_, out, _ := r.post(t, "alice", protocol.Rev20260728, "", body)
		if i := strings.Index(out, "data: {"); i >= 0 {
			out = out[i+len("data: "):]
		}
		var m struct {
			Result struct {
				Type     string          `json:"resultType"`
				Requests json.RawMessage `json:"inputRequests"`
				State    string          `json:"requestState"`
			}
		}
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&m); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		want := `{"connect-github":{"method":"elicitation/create","params":{"mode":"url","message":"Access to your github account is needed. Please allow it in your browser.","url":"` +
			connectURL + `"}}}`
		if m.Result.Type != "input_required" || string(m.Result.Requests) != want {
			t.Errorf("got  %s %s\nwant input_required %s", m.Result.Type, m.Result.Requests, want)
		}
		// The state of the tool is returned as it was: sealed.
		if state, err := needySealer.Open(alice, call, m.Result.State); err != nil ||
			string(state) != "the tool's own" {
			t.Errorf("got state %q of %q: %v", state, m.Result.State, err)
		}
	})
}
