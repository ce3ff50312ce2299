package thirdparty

import (
	"context"
	"time"

	claimed "github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Membership describes a user's memberships, according to the provider's last answer about a live
// session. Rules are evaluated on it.
type Membership struct {
	Connector, Name              string
	Groups, Organizations, Teams []string
	SaidAt                       time.Time
	// Withheld lists, by resource, the scopes that scope rules withhold from the user.
	Withheld map[string]oauth.Scopes
}

// Memberships returns the user's memberships at each provider with a live session, from the newest session of
// each account there, and which of the offered scopes its rules withhold. It sends no request to a provider.
func (d *Delegation) Memberships(
	ctx context.Context, userID string, offered map[string]oauth.Scopes,
) (out []Membership, err error) {
	for _, c := range d.connectors {
		sessions, err := d.latest(ctx, c, userID, nil)
		if err != nil {
			return nil, err
		}
		for _, s := range sessions {
			claims := s.Profile.Claims
			m := Membership{
				Connector: c.ID, Name: c.Name, SaidAt: s.CheckedAt, Groups: s.groups(),
				Organizations: claimed.List(claims, "organizations"), Teams: claimed.List(claims, "teams"),
				Withheld: map[string]oauth.Scopes{},
			}
			for resource, scopes := range offered {
				permitted, _ := c.permit(s.Profile, resource, scopes)
				if left := scopes.Without(permitted); len(left) > 0 {
					m.Withheld[resource] = left
				}
			}
			out = append(out, m)
		}
	}
	return out, nil
}
