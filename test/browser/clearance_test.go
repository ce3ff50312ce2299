package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// bank is a gateway in front of an MCP server. Some of its tools require tool call approval.
type bank struct {
	*demotest.Demo
	paid atomic.Int64 // calls that reached the MCP server
}

// newBank starts a bank with the tools pay, erase and order. rules holds the required approvals,
// and top is the top-level configuration.
func newBank(t *testing.T, top string, rules map[string]string) *bank {
	t.Helper()
	k := &bank{}
	s := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	for _, name := range []string{"pay", "erase", "order"} {
		mcp.AddTool(s, &mcp.Tool{Name: name},
			func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
				k.paid.Add(1)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil, nil
			})
	}
	var tools []string
	for name, rule := range rules {
		tools = append(tools, "{name: "+name+", clearance: "+rule+"}")
	}
	server := func(*http.Request) *mcp.Server { return s }
	sessions := mcp.NewStreamableHTTPHandler(server, nil)
	stateless := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{Stateless: true})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == "2026-07-28" { // this revision has no sessions
			stateless.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	}))
	t.Cleanup(upstream.Close)
	k.Demo = demotest.StartGateway(t, upstream.URL, top, "name: Bank\n"+
		"scopes: [{name: bank, description: make payments, default: true}]\n"+
		"tools: ["+strings.Join(tools, ", ")+"]", demotest.Options{Host: "localhost"})
	return k
}

// stage evaluates to the page that the browser shows on the way to a tool call approval.
const stage = `(() => {
	if (document.readyState !== 'complete' || window.stale) return '';
	if (location.pathname === '/callback') return 'callback';
	const main = document.querySelector('main'), there = (css) => !!document.querySelector(css);
	if (!main) return '';
	const proof = there('#username') ? '' : location.pathname === '/prove' ? 'prove' : 'second';
	if (proof && there('form[data-passkey=get] button')) return proof + ': passkey';
	if (proof && there('input[name=password]')) return proof + ': password';
	if (there('a[href*="/account/passkey?to="]')) return 'no passkey yet';
	if (there('form[data-passkey=create] button')) return 'make a passkey';
	if (main.innerText.includes('Devices get lost')) return 'passkey made';
	if (there('input[name=password]')) return 'sign-in';
	if (there('section.call')) return 'clearance';
	if (there('button[value=approve]')) return 'consent';
	if (main.innerText.includes('You have approved the call')) return 'approved';
	return 'other: ' + location.pathname;
})()`

// walk opens a link, signs in, provides the requested proof and approves. It returns the pages on
// the way.
func (b *tab) walk(link, name, password string) (seen []string) {
	b.TB.Helper()
	b.visit(link)
	return b.goOn(name, password)
}

// goOn is walk from the current page on.
func (b *tab) goOn(name, password string) (seen []string) {
	b.TB.Helper()
	for range 10 {
		b.Until(stage + " !== ''")
		at := eval[string](b, stage)
		seen = append(seen, at)
		switch at {
		case "sign-in":
			b.signIn(name, password)
		case "prove: password":
			b.leave()
			b.Do(chromedp.SendKeys(chromedp.CSS("input[name=password]"), password+"\r"))
			b.arrive()
		case "no passkey yet":
			b.click(`a[href*="/account/passkey?to="]`)
		case "make a passkey":
			b.click("form[data-passkey=create] button")
		case "passkey made":
			b.click("p.actions a.button:not(.primary)")
		case "second: passkey", "prove: passkey":
			b.click("form[data-passkey=get] button")
		case "clearance", "consent":
			b.decide("approve")
		default:
			return seen
		}
	}
	b.TB.Fatalf("the pages do not end: %v", seen)
	return nil
}
