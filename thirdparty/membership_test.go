package thirdparty

import (
	"slices"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestMemberships: OB-10, administrators see the memberships that a provider reported and the
// scopes that rules withhold.
func TestMemberships(t *testing.T) {
	const resource = "https://mcp.example.com/mcp"
	r := newRig(t, func(c *Config) {
		c.Connectors[0].ScopeRules = []ScopeRule{
			{Resource: resource, Scopes: oauth.Scopes{"notes:write"}, Groups: []string{"nobody-is-in-it"}},
		}
	})
	a, _ := r.signIn("")
	offered := map[string]oauth.Scopes{resource: {"notes:read", "notes:write"}, "https://other.example": {"mcp"}}
	got, err := r.Memberships(t.Context(), a.User.ID, offered)
	if err != nil || len(got) != 1 || got[0].Connector != "corp" || got[0].SaidAt.IsZero() ||
		len(got[0].Withheld) != 1 || !slices.Equal(got[0].Withheld[resource], oauth.Scopes{"notes:write"}) {
		t.Errorf("OB-10: got %+v, %v, want one provider, and notes:write withheld alone", got, err)
	}
	if none, err := r.Memberships(t.Context(), "usr_unknown", offered); err != nil || len(none) != 0 {
		t.Errorf("OB-10: of a person without a session there: %+v, %v", none, err)
	}
}
