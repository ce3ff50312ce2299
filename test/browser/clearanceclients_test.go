package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// host is a client of a TypeScript SDK that executes commands (test/clients/clearance.mjs).
type host struct {
	t     *testing.T
	in    io.Writer
	lines chan happened
}

// happened is an event that it reports.
type happened struct {
	Visit, Mode, Message, Error string
	Code                        any
	Connected, Finished         bool
	Result                      json.RawMessage
}

func startHost(t *testing.T, sdk, mcpURL, era, links string) *host {
	t.Helper()
	cmd := npmtest.Command(t, "node", "clients/clearance.mjs", sdk, mcpURL, era, links)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t, in, make(chan happened, 32)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(h.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var what happened
			if err := json.Unmarshal(lines.Bytes(), &what); err != nil {
				what.Error = lines.Text()
			}
			h.lines <- what
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-done
		_ = cmd.Wait() // it is killed at the end of the test
	})
	return h
}

func (h *host) next() happened {
	h.t.Helper()
	select {
	case what, open := <-h.lines:
		if !open {
			h.t.Fatal("the client has ended")
		}
		return what
	case <-time.After(wait.Bound):
		h.t.Fatal("the client says nothing")
		return happened{}
	}
}

// call makes the client call the tool.
func (h *host) call() happened {
	h.t.Helper()
	fmt.Fprintln(h.in, "call")
	return h.next()
}

// paysOnce checks that the MCP server got the call exactly once, and that the next call waits
// again.
func (k *bank) paysOnce(t *testing.T, before int64, what happened) {
	t.Helper()
	if !strings.Contains(string(what.Result), `"paid"`) || k.paid.Load() != before+1 {
		t.Fatalf("got %+v, and %d calls at the MCP server", what, k.paid.Load()-before)
	}
}

func (k *bank) wantWalk(b *tab, link string, want ...string) {
	b.TB.Helper()
	if seen := b.walk(link, k.Username, k.Password); !slices.Equal(seen, want) {
		b.TB.Fatalf("the person sees %v, want %v", seen, want)
	}
}

// TestClearanceByTypeScript checks how the TypeScript SDKs handle a call that requires approval,
// and that the call passes once after the user has approved it in a browser.
func TestClearanceByTypeScript(t *testing.T) {
	lane.Long(t, "test/e2e calls what needs a clearance")
	t.Parallel()
	npmtest.Dir(t) // skips if the packages are missing
	k, b := newBank(t, "", map[string]string{"pay": "{by: person}"}), open(t, looks[0])
	connected := func(t *testing.T, b *tab, sdk, era, links string) *host {
		t.Helper()
		h := startHost(t, sdk, k.MCPURL, era, links)
		seen := b.walk(h.next().Visit, k.Username, k.Password)
		if n := len(seen); n < 2 || seen[n-2] != "consent" || seen[n-1] != "callback" || !h.next().Connected {
			t.Fatalf("the person sees %v", seen)
		}
		return h
	}
	for _, sdk := range []string{"v1", "v2"} {
		t.Run("RS-217 RS-125 2025-11-25, a client that shows links: "+sdk, func(t *testing.T) {
			b := b.in(t)
			h, before := connected(t, b, sdk, "2025-11-25", "links"), k.paid.Load()
			got := h.call()
			if got.Code != float64(-32042) || got.Mode != "url" ||
				!strings.HasPrefix(got.Visit, k.Issuer+"/clearance/") {
				t.Fatalf("got %+v", got)
			}
			k.wantWalk(b, got.Visit, "clearance", "approved")
			k.paysOnce(t, before, h.call())
			if next := h.call(); next.Code != float64(-32042) || next.Visit == got.Visit {
				t.Errorf("the next call: got %+v", next)
			}
		})
	}
	t.Run("RS-217 2025-11-25, a client that shows none: v1 refreshes, stops, and does not say where the page is",
		func(t *testing.T) {
			b := b.in(t)
			h, before := connected(t, b, "v1", "2025-11-25", ""), k.paid.Load()
			if got := h.call(); !strings.Contains(got.Error, "403 after trying upscoping") ||
				strings.Contains(got.Error, "/clearance/") {
				t.Fatalf("got %+v", got)
			}
			b.visit(k.Issuer + "/account")
			links := eval[[]string](b, `[...document.querySelectorAll('a[href*="/clearance/"]')].map(a => a.href)`)
			if len(links) == 0 {
				t.Fatal("the account page has no link")
			}
			k.wantWalk(b, links[len(links)-1], "clearance", "approved")
			k.paysOnce(t, before, h.call())
		})
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		t.Run("RS-217 CL-20 "+era+", a client that shows none: v2 steps up, and its host calls again",
			func(t *testing.T) {
				b := b.in(t)
				h, before := connected(t, b, "v2", era, ""), k.paid.Load()
				ids := 0
				for range 2 {
					got := h.call()
					u, err := url.Parse(got.Visit)
					if err != nil || u.Path != "/authorize" {
						t.Fatalf("got %+v, %v", got, err)
					}
					ids++
					scope := u.Query().Get("scope")
					if strings.Count(scope, "clearance:clr_") != ids || !strings.Contains(scope, "bank") {
						t.Errorf("the scope of step-up %d is %q", ids, scope)
					}
					k.wantWalk(b, got.Visit, "consent", "clearance", "callback") // it sends prompt=consent
					if got = h.next(); !got.Finished {
						t.Fatalf("got %+v", got)
					}
					k.paysOnce(t, before, h.call())
					before++
				}
			})
	}
	t.Run("RS-217 RS-178 2026-07-28, a client that shows links: v2", func(t *testing.T) {
		b := b.in(t)
		h, before := connected(t, b, "v2", "2026-07-28", "links"), k.paid.Load()
		for range 2 {
			got := h.call()
			if got.Mode != "url" || !strings.HasPrefix(got.Visit, k.Issuer+"/clearance/") {
				t.Fatalf("got %+v", got)
			}
			k.wantWalk(b, got.Visit, "clearance", "approved")
			k.paysOnce(t, before, h.next()) // the call that has waited
			before++
		}
	})
}

// goMetadata returns the registration of a client of the Go SDK.
func goMetadata(redirect string) *oauthex.ClientRegistrationMetadata {
	return &oauthex.ClientRegistrationMetadata{
		ClientName: "Go SDK test", RedirectURIs: []string{redirect},
		GrantTypes:    []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
	}
}

// goRegisters registers a client of the Go SDK, like a program that keeps its id.
func (k *bank) goRegisters(t *testing.T) string {
	t.Helper()
	server, err := auth.GetAuthServerMetadata(t.Context(), k.Issuer, nil)
	if err != nil || server == nil {
		t.Fatalf("%+v, %v", server, err)
	}
	got, err := oauthex.RegisterClient(t.Context(), server.RegistrationEndpoint,
		goMetadata("http://127.0.0.1/callback"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return got.ClientID
}

// goHost returns a client of the Go SDK whose user has the browser. With an id it does not
// register. links handles a link; if nil, the client cannot show links. seen gets the pages that
// the client opened.
func (k *bank) goHost(
	t *testing.T, b *tab, era, id string, seen *[]string, links func(*mcp.ElicitParams),
) *mcp.ClientSession {
	t.Helper()
	a := serveApp(t)
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: a.URL + "/callback",
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult,
			error) {
			*seen = append(*seen, b.walk(args.URL, k.Username, k.Password)...)
			q := a.answer(t, b)
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	}
	if id != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: id}
	} else {
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: goMetadata(c.RedirectURL)}
	}
	handler, err := auth.NewAuthorizationCodeHandler(c)
	if err != nil {
		t.Fatal(err)
	}
	o := &mcp.ClientOptions{}
	if links != nil {
		o.Capabilities = &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}},
		}
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			links(r.Params)
			return &mcp.ElicitResult{Action: "accept"}, nil
		}
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: k.MCPURL, OAuthHandler: handler, DisableStandaloneSSE: true},
		&mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// TestClearanceByGo is TestClearanceByTypeScript with the Go SDK.
func TestClearanceByGo(t *testing.T) {
	lane.Long(t, "test/e2e calls what needs a clearance")
	t.Parallel()
	k := newBank(t, `clients: [{id: desk, name: Desk, redirect_uris: ["http://127.0.0.1/callback"]}]`,
		map[string]string{"pay": "{by: person}"})
	b := open(t, looks[0])
	call := func(cs *mcp.ClientSession) (string, error) {
		r, err := cs.CallTool(context.Background(), &mcp.CallToolParams{
			Name: "pay", Arguments: map[string]any{"amount": 101, "to": "bob"},
		})
		if err != nil || r.IsError || len(r.Content) != 1 {
			return "", err
		}
		return r.Content[0].(*mcp.TextContent).Text, nil
	}
	t.Run("RS-217 RS-125 2025-11-25, a client that shows links", func(t *testing.T) {
		b := b.in(t)
		var seen []string
		cs := k.goHost(t, b, "2025-11-25", "", &seen, func(p *mcp.ElicitParams) { t.Errorf("asked %+v", p) })
		before := k.paid.Load()
		for range 2 {
			var rpc *jsonrpc.Error
			var data struct{ Elicitations []mcp.ElicitParams }
			if _, err := call(cs); !errors.As(err, &rpc) || rpc.Code != -32042 ||
				json.Unmarshal(rpc.Data, &data) != nil || len(data.Elicitations) != 1 {
				t.Fatalf("got %v", err)
			}
			k.wantWalk(b, data.Elicitations[0].URL, "clearance", "approved")
			before++
			if text, err := call(cs); err != nil || text != "paid" || k.paid.Load() != before {
				t.Fatalf("got %q, %v", text, err)
			}
		}
	})
	t.Run("RS-217 RS-178 2026-07-28, a client that shows links", func(t *testing.T) {
		b := b.in(t)
		var seen []string
		cs := k.goHost(t, b, "2026-07-28", "", &seen, func(p *mcp.ElicitParams) {
			k.wantWalk(b, p.URL, "clearance", "approved")
		})
		before := k.paid.Load()
		for range 2 {
			before++
			if text, err := call(cs); err != nil || text != "paid" || k.paid.Load() != before {
				t.Fatalf("got %q, %v", text, err)
			}
		}
	})
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		for _, c := range []struct {
			how, id string
			sees    []string
		}{
			{"with an id of its own", "desk", []string{"consent", "clearance", "callback"}}, // others could ask as desk
			{"registered once", k.goRegisters(t), []string{"clearance", "callback"}},
		} {
			t.Run("RS-217 CL-20 "+era+", a client that shows none: "+c.how+" it steps up", func(t *testing.T) {
				b := b.in(t)
				var seen []string
				cs := k.goHost(t, b, era, c.id, &seen, nil)
				before := k.paid.Load()
				for range 2 {
					seen, before = nil, before+1
					text, err := call(cs)
					if err != nil || text != "paid" || k.paid.Load() != before || !slices.Equal(seen, c.sees) {
						t.Fatalf("the person sees %v; got %q, %v", seen, text, err)
					}
				}
			})
		}
		t.Run("RS-217 "+era+", a client that shows none: one that registers again gets the link in words",
			func(t *testing.T) {
				b := b.in(t)
				var seen []string
				cs := k.goHost(t, b, era, "", &seen, nil)
				seen = nil
				before := k.paid.Load()
				_, err := call(cs)
				if !slices.Equal(seen, []string{"consent", "callback"}) || err == nil || k.paid.Load() != before {
					t.Fatalf("the person sees %v; got %v", seen, err)
				}
				m := clearanceLink.FindStringSubmatch(err.Error())
				if m == nil {
					t.Fatalf("got %v", err)
				}
				k.wantWalk(b, m[1], "clearance", "approved")
				if text, err := call(cs); err != nil || text != "paid" || k.paid.Load() != before+1 {
					t.Fatalf("got %q, %v", text, err)
				}
			})
	}
}

// clearanceLink matches the link in a client's message.
var clearanceLink = regexp.MustCompile(`Open (\S+/clearance/clr_\S+) to do so, then call again\.`)
