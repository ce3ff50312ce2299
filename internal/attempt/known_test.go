package attempt

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestKnownFaults: each row matches an attempt of its client and no other. The manual's table is
// built from the rows.
func TestKnownFaults(t *testing.T) {
	var table strings.Builder
	table.WriteString("| Client | Version | `fault` | What it does | What helps |\n|---|---|---|---|---|\n")
	for _, k := range KnownFaults() {
		e := k.Fault.explained()
		marks := k.ID + k.Name + k.Agent + k.RedirectURI
		if e.What == "" || k.Client == "" || k.Versions == "" || k.Text == "" || marks == "" {
			t.Errorf("OB-01: %+v lacks something", k)
		}
		fmt.Fprintf(&table, "| %s | %s | `%s` | %s | %s |\n", k.Client, k.Versions, k.Fault, k.Text,
			strings.Join(strings.Fields(k.Person+" "+k.Operator), " "))
		any := func(pattern string) string { return strings.ReplaceAll(pattern, "*", "x") }
		steps := []Step{{
			Reference: "R", At: noon, Request: Request{
				Agent: any(k.Agent), Path: cmp.Or(any(k.Path), "/"),
				Params: []Param{{"redirect_uri", any(k.RedirectURI)}},
			},
			Keys: Keys{Client: any(k.ID), ClientName: any(k.Name)},
		}}
		v := k.Fault.verdict("...")
		v.Decided = "R"
		v.recognize(steps)
		if !strings.HasPrefix(v.Known, k.Client) || k.Operator != "" && v.Advice.Operator != k.Operator {
			t.Errorf("OB-01: %s with %s: got %q, %+v", k.Client, k.Fault, v.Known, v.Advice)
		}
		other := ServerFailed.verdict("...")
		other.recognize(steps)
		v = k.Fault.verdict("...")
		v.recognize([]Step{{At: noon, Request: Request{Agent: "another/1"}, Keys: Keys{Client: "another"}}})
		if other.Known != "" || v.Known != "" {
			t.Errorf("OB-01: %s is known of another fault, or client: %q, %q", k.Client, other.Known, v.Known)
		}
	}
	tableIn(t, "../../docs/clients.md", "known", table.String())
}

func TestLike(t *testing.T) {
	for _, tt := range []struct {
		text, pattern string
		want          bool
	}{
		{"a", "a", true}, {"ab", "a", false}, {"a", "ab", false}, {"ab", "a*", true}, {"a", "a*", true},
		{"b/", "*/", true}, {"abab", "*ab", true}, {"", "a", false},
		{"http://127.0.0.1:5/callback/x", "http://127.0.0.1:*/callback*", true},
		{"https://claude.ai.evil.example/api", "https://claude.*/api/mcp", false}, {"aXbXc", "a*b*c", true},
	} {
		if got := like(tt.text, tt.pattern); got != tt.want {
			t.Errorf("OB-01: %q like %q: got %t", tt.text, tt.pattern, got)
		}
	}
}

// TestKnownFaultOfCopilot: Judge reports the known fault with its specific advice.
func TestKnownFaultOfCopilot(t *testing.T) {
	document := "https://github.com/copilot/cli/client-metadata.json"
	v := Judge([]Step{{
		Reference: "R", At: noon, Kind: Authorize, Keys: Keys{Client: document},
		Request:  Request{Params: []Param{{"redirect_uri", "http://127.0.0.1:50123/callback"}}},
		Answer:   Answer{Status: 400, Error: "invalid_request", Cause: CauseUnregisteredURI},
		Expected: []Expected{{Name: "redirect_uri", Values: []string{"http://127.0.0.1:33418/"}}},
	}}, noon.Add(time.Minute))
	if v.Fault != RedirectURIUnknown || !strings.Contains(v.Known, "lists the path / only") ||
		!strings.Contains(v.Advice.Operator, "documents_redirects") || v.Next != v.Advice.Client {
		t.Errorf("OB-01: got %+v", v)
	}
}
