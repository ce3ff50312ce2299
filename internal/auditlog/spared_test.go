package auditlog

import (
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
)

// TestASignInSaysEachThingOnce: OP-02. With standard detail, the entries of a sign-in omit what another one of them
// says. With full detail they keep it.
func TestASignInSaysEachThingOnce(t *testing.T) {
	type fields = map[string]string
	for _, c := range []struct {
		name, event string
		in          fields
		want        fields
	}{
		{"approval", audit.ConsentApproved,
			fields{
				"client_id": "c", "client_name": "App", "shown_client": "App", "resource_match": "exact",
				"scope": "mcp",
			},
			fields{"client_id": "c", "shown_client": "App", "scope": "mcp"}},
		{"approval without a page", audit.ConsentApproved,
			fields{"client_id": "c", "client_name": "App", "remembered": "true"},
			fields{"client_id": "c", "client_name": "App", "remembered": "true"}},
		{"another spelling of the MCP server", audit.ConsentApproved,
			fields{"resource_match": "slash"}, fields{"resource_match": "slash"}},
		{"token for a code", audit.TokenIssued,
			fields{
				"grant_type": "authorization_code", "client_id": "c", "client_name": "App", "scope": "mcp",
				"jti": "j",
			},
			fields{"grant_type": "authorization_code", "client_id": "c", "jti": "j"}},
		{"token with fewer scopes than were approved", audit.TokenIssued,
			fields{"grant_type": "authorization_code", "scope": "mcp", "scope_unproved": "admin"},
			fields{"grant_type": "authorization_code", "scope": "mcp", "scope_unproved": "admin"}},
		{"token for an assertion", audit.TokenIssued,
			fields{"grant_type": "assertion", "client_name": "App", "scope": "mcp"},
			fields{"grant_type": "assertion", "client_name": "App", "scope": "mcp"}},
	} {
		for _, full := range []bool{false, true} {
			var attrs []slog.Attr
			for name, text := range c.in {
				attrs = append(attrs, slog.String(name, text))
			}
			w := NewWriter(Options{Now: time.Now, Full: full, Log: slog.New(slog.DiscardHandler)})
			w.Add(t.Context(), c.event, attrs)
			got, err := verify.ParseEntry(w.waiting[0].Leaf)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if full {
				want = c.in
			}
			if !maps.Equal(got.Fields, want) {
				t.Errorf("%s, full %v: got %v, want %v", c.name, full, got.Fields, want)
			}
			if len(attrs) != len(c.in) {
				t.Errorf("%s: the attributes of the event were changed: %v", c.name, attrs)
			}
		}
	}
}
