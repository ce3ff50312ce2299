package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// bank is a gateway before an MCP server whose tool pay needs a clearance.
type bank struct {
	*demotest.Demo
	paid atomic.Int64 // calls that reached the MCP server
}

// newBank starts one. Rule is the clearance that a call of pay needs, and top what the configuration says of all.
func newBank(t *testing.T, top, rule string) *bank {
	t.Helper()
	k := &bank{}
	s := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "pay"},
		func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
			k.paid.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil, nil
		})
	server := func(*http.Request) *mcp.Server { return s }
	sessions := mcp.NewStreamableHTTPHandler(server, nil)
	stateless := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{Stateless: true})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == "2026-07-28" { // which has no sessions
			stateless.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	}))
	t.Cleanup(upstream.Close)
	k.Demo = demotest.StartGateway(t, upstream.URL, top, "name: Bank\n"+
		"scopes: [{name: bank, description: make payments, default: true}]\n"+
		"tools: [{name: pay, clearance: "+rule+"}]", demotest.Options{})
	return k
}

// stage is where the browser is, of the pages that a person meets on the way to a clearance.
const stage = `(() => {
	if (document.readyState !== 'complete' || window.stale) return '';
	if (location.pathname === '/callback') return 'callback';
	const main = document.querySelector('main');
	if (!main) return '';
	if (document.querySelector('form[data-passkey] button') && location.pathname.startsWith('/login')) return 'passkey';
	if (document.querySelector('input[name=password]')) return location.pathname.startsWith('/prove') ? 'prove' : 'sign-in';
	if (document.querySelector('section.call')) return 'clearance';
	if (document.querySelector('button[value=approve]')) return 'consent';
	if (main.innerText.includes('You have allowed the call')) return 'allowed';
	return 'other: ' + location.pathname;
})()`

// walk goes where a link leads, signs in and says yes, and returns the pages on the way.
func (b *tab) walk(link, name, password string) (seen []string) {
	b.t.Helper()
	b.do(chromedp.Navigate(link))
	for range 10 {
		b.until(stage + " !== ''")
		at, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](stage))
		if err != nil {
			b.t.Fatal(err)
		}
		seen = append(seen, at)
		switch at {
		case "sign-in", "passkey":
			b.signIn(name, password)
		case "clearance", "consent":
			b.decide("approve")
		default:
			return seen
		}
	}
	b.t.Fatalf("the pages do not end: %v", seen)
	return nil
}
