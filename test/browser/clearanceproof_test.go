package browser

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// payer is a client of 2025-11-25 that shows links.
type payer struct {
	*bank
	*mcp.ClientSession
}

func (k *bank) payer(t *testing.T, b *tab) *payer {
	t.Helper()
	var seen []string
	return &payer{k, k.goHost(t, b, "2025-11-25", "", &seen, func(p *mcp.ElicitParams) { t.Errorf("asked %+v", p) })}
}

func (p *payer) call(tool string, arguments map[string]any) (*mcp.CallToolResult, error) {
	return p.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
}

// held is the page that a call waits for.
func (p *payer) held(t *testing.T, tool string, arguments map[string]any) (link string) {
	t.Helper()
	before := p.paid.Load()
	_, err := p.call(tool, arguments)
	var rpc *jsonrpc.Error
	var data struct{ Elicitations []mcp.ElicitParams }
	if !errors.As(err, &rpc) || rpc.Code != -32042 || json.Unmarshal(rpc.Data, &data) != nil ||
		len(data.Elicitations) != 1 || p.paid.Load() != before {
		t.Fatalf("got %v, and %d calls at the MCP server", err, p.paid.Load()-before)
	}
	return data.Elicitations[0].URL
}

// passes holds that a call goes through, once.
func (p *payer) passes(t *testing.T, tool string, arguments map[string]any) {
	t.Helper()
	before := p.paid.Load()
	if r, err := p.call(tool, arguments); err != nil || r.IsError || p.paid.Load() != before+1 {
		t.Fatalf("got %+v, %v, and %d calls at the MCP server", r, err, p.paid.Load()-before)
	}
	p.held(t, tool, arguments)
}

// TestClearanceWithProof: tools whose calls need a passkey, a recent proof, or another person, behind the gateway.
func TestClearanceWithProof(t *testing.T) {
	const age = 8 * time.Second
	k := newBank(t, "", map[string]string{
		"pay": "{by: person, acr: phr}", "erase": "{by: person, max_age: " + age.String() + "}",
		"order": "{by: other, approvers: [olga]}",
	})
	k.AddUser(t, "olga")
	b := open(t, looks[0])
	a := b.authenticator()
	p := k.payer(t, b)
	walked := func(t *testing.T, b *tab, link string) []string {
		t.Helper()
		b.t = t
		return b.walk(link, k.Username, k.Password)
	}
	t.Run("RS-217: a password is not enough where a passkey is demanded, and the person makes one", func(t *testing.T) {
		call := map[string]any{"amount": 1}
		seen := walked(t, b, p.held(t, "pay", call))
		want := []string{"no passkey yet", "make a passkey", "second: passkey", "clearance", "approved"}
		if !slices.Equal(seen, want) {
			t.Fatalf("the person sees %v, want %v", seen, want)
		}
		p.passes(t, "pay", call)
	})
	t.Run("RS-217: a person who comes with a password proves it by the passkey first", func(t *testing.T) {
		b.t = t
		call := map[string]any{"amount": 2}
		link := p.held(t, "pay", call)
		b.present(a, false) // or the browser signs them in by it
		b.signOut(k.Issuer)
		b.visit(link)
		b.signIn(k.Username, k.Password)
		b.until(stage + " === 'second: passkey'")
		b.present(a, true)
		want := []string{"second: passkey", "clearance", "approved"}
		if seen := b.goOn(k.Username, k.Password); !slices.Equal(seen, want) {
			t.Fatalf("the person sees %v, want %v", seen, want)
		}
		p.passes(t, "pay", call)
	})
	t.Run("RS-217: a proof that is too old is renewed before the page", func(t *testing.T) {
		call := map[string]any{"folder": "x"}
		link := p.held(t, "erase", call)
		time.Sleep(age + time.Second)
		seen := walked(t, b, link)
		n := len(seen) // a slow machine proves it more than once
		if n < 3 || seen[0] != "prove: passkey" || !slices.Equal(seen[n-2:], []string{"clearance", "approved"}) {
			t.Fatalf("the person sees %v", seen)
		}
		p.passes(t, "erase", call)
	})
	t.Run("RS-217: another person approves it, and the call of the first passes", func(t *testing.T) {
		b.t = t
		call := map[string]any{"goods": "a house"}
		link := p.held(t, "order", call)
		b.visit(link)
		b.says("Another person has to approve this call")
		if there, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
			"!!document.querySelector('button[value=approve]')")); err != nil || there {
			t.Fatalf("the first person can decide (%v)", err)
		}
		o := open(t, looks[1])
		o.visit(link)
		o.signIn("olga", k.Password)
		o.says("alice")
		o.inspect("clearance-other")
		o.decide("approve")
		o.says("You have approved the call")
		p.passes(t, "order", call)
	})
	t.Run("RS-217: what cannot be seen stands there by its number", func(t *testing.T) {
		b.t = t
		link := p.held(t, "pay", map[string]any{"file": "invoice\u202egnp.exe", "to\u200b": "bob", "amount": 1e3})
		b.visit(link)
		b.until(stage + " === 'clearance'")
		names, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](
			"[...document.querySelectorAll('section.call .charname')].map(e => e.textContent)"))
		if err != nil || !slices.Equal(slices.Sorted(slices.Values(names)), []string{"U+200B", "U+202E"}) {
			t.Errorf("got %v, %v", names, err)
		}
		raw, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("/[\\u202e\\u200b]/.test(document.body.textContent)"))
		if err != nil || raw {
			t.Errorf("the page has the characters themselves (%v)", err)
		}
		for _, l := range looks {
			b.dress(l)
			b.inspect("clearance")
		}
	})
}
