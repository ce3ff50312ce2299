package storage

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Audiences stores the authorization servers that this server issues assertions about users for.
type Audiences interface {
	// AddAudience adds an audience. It returns ErrExists if its issuer is stored.
	AddAudience(ctx context.Context, a Audience) error
	// ListAudiences returns all audiences, by issuer.
	ListAudiences(ctx context.Context) ([]Audience, error)
	// RemoveAudience removes an audience. It returns ErrNotFound if it does not exist.
	RemoveAudience(ctx context.Context, issuer string) error
}

// Audience is an authorization server that may receive assertions about users, with the limits on
// them.
type Audience struct {
	Issuer    string           `json:"-"`         // its issuer identifier
	Resources []string         `json:"resources"` // its MCP servers that may be requested, canonical
	Scopes    oauth.Scopes     `json:"scopes"`    // that may be requested there
	Clients   []AudienceClient `json:"clients"`
	Mail      bool             `json:"mail,omitempty"`    // whether the assertion contains the user's mail address
	MaxAge    Age              `json:"max_age,omitempty"` // the maximum time since the user signed in; 0: no limit
	CreatedAt time.Time        `json:"-"`
}

// AudienceClient is a client that may request assertions for an audience.
type AudienceClient struct {
	ID    string `json:"id"`    // here
	There string `json:"there"` // at the audience
}

// Client returns the client with a local id, and false if it may not request assertions.
func (a *Audience) Client(id string) (AudienceClient, bool) {
	i := slices.IndexFunc(a.Clients, func(c AudienceClient) bool { return c.ID == id })
	if i < 0 {
		return AudienceClient{}, false
	}
	return a.Clients[i], true
}

// SignsIn reports whether users may sign in here for a client that needs their identity: an
// administrator registered it with the scope openid, and it has credentials (AS-244).
func (c *Client) SignsIn() bool { return c.Operated() && !c.Public() && c.Scopes.Has(oauth.OpenID) }
