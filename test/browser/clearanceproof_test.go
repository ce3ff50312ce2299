package browser

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
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

// held returns the link to the page that a call waits for.
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

// passes checks that a call succeeds once.
func (p *payer) passes(t *testing.T, tool string, arguments map[string]any) {
	t.Helper()
	before := p.paid.Load()
	if r, err := p.call(tool, arguments); err != nil || r.IsError || p.paid.Load() != before+1 {
		t.Fatalf("got %+v, %v, and %d calls at the MCP server", r, err, p.paid.Load()-before)
	}
	p.held(t, tool, arguments)
}

// age makes the proofs of all sessions one hour older.
func (k *bank) age(t *testing.T) {
	t.Helper()
	config, err := os.ReadFile(k.Config)
	if err != nil {
		t.Fatal(err)
	}
	data := regexp.MustCompile(`(?m)^data_dir: (.*)$`).FindSubmatch(config)
	db, err := sql.Open("sqlite", filepath.Join(string(data[1]), "mcp-authd.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	done, err := db.ExecContext(t.Context(),
		"UPDATE sessions SET auth_time = auth_time - 3600000, proved_at = proved_at - 3600000")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("made %d sessions older, %v", n, err)
	}
}

// TestClearanceWithProof checks tools behind the gateway whose calls require a passkey, a recent
// proof, or another user.
func TestClearanceWithProof(t *testing.T) {
	lane.Long(t, "authserver tests clearances with proof")
	t.Parallel()
	k := newBank(t, "", map[string]string{
		"pay": "{by: person, acr: phr}", "erase": "{by: person, max_age: 10m}",
		"order": "{by: other, approvers: [olga]}",
	})
	k.AddUser(t, "olga")
	b := open(t, looks[0])
	a := b.authenticator()
	p := k.payer(t, b)
	walked := func(t *testing.T, b *tab, link string) []string {
		t.Helper()
		return b.in(t).walk(link, k.Username, k.Password)
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
		b := b.in(t)
		call := map[string]any{"amount": 2}
		link := p.held(t, "pay", call)
		b.present(a, false) // otherwise the browser would sign them in with it
		b.signOut(k.Issuer)
		b.visit(link)
		b.signIn(k.Username, k.Password)
		b.Until(stage + " === 'second: passkey'")
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
		k.age(t)
		want := []string{"prove: passkey", "clearance", "approved"}
		if seen := walked(t, b, link); !slices.Equal(seen, want) {
			t.Fatalf("the person sees %v, want %v", seen, want)
		}
		p.passes(t, "erase", call)
	})
	t.Run("RS-217: another person approves it, and the call of the first passes", func(t *testing.T) {
		b := b.in(t)
		call := map[string]any{"goods": "a house"}
		link := p.held(t, "order", call)
		b.visit(link)
		b.says("Another person has to approve this call")
		if eval[bool](b, "!!document.querySelector('button[value=approve]')") {
			t.Fatal("the first person can decide")
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
		b := b.in(t)
		link := p.held(t, "pay", map[string]any{"file": "invoice\u202egnp.exe", "to\u200b": "bob", "amount": 1e3})
		b.visit(link)
		b.Until(stage + " === 'clearance'")
		names := eval[[]string](b,
			"[...document.querySelectorAll('section.call .charname')].map(e => e.textContent).sort()")
		if !slices.Equal(names, []string{"U+200B", "U+202E"}) {
			t.Errorf("got %v", names)
		}
		if eval[bool](b, "/[\\u202e\\u200b]/.test(document.body.textContent)") {
			t.Error("the page has the characters themselves")
		}
		for _, l := range looks {
			b.Dress(l)
			b.inspect("clearance")
		}
	})
}
