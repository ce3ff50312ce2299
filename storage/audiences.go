package storage

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Audiences holds the authorization servers to which we assert who people are.
type Audiences interface {
	// AddAudience adds one. ErrExists when its issuer is there.
	AddAudience(ctx context.Context, a Audience) error
	// ListAudiences returns all of them, by issuer.
	ListAudiences(ctx context.Context) ([]Audience, error)
	// RemoveAudience removes one. ErrNotFound when there is none.
	RemoveAudience(ctx context.Context, issuer string) error
}

// Audience is an authorization server to which we assert who people are, and what may be asserted.
type Audience struct {
	Issuer    string           `json:"-"`         // its issuer identifier
	Resources []string         `json:"resources"` // its MCP servers that may be named, canonical
	Scopes    oauth.Scopes     `json:"scopes"`    // that may be asked for there
	Clients   []AudienceClient `json:"clients"`
	Mail      bool             `json:"mail,omitempty"`    // whether the assertion says where the person gets mail
	MaxAge    Age              `json:"max_age,omitempty"` // how long ago a person has signed in at most; 0: any time
	CreatedAt time.Time        `json:"-"`
}

// AudienceClient is a client that may have assertions for an audience.
type AudienceClient struct {
	ID    string `json:"id"`    // here
	There string `json:"there"` // at the audience
}

// Client returns the client with an id of ours, and false when it may have no assertions.
func (a *Audience) Client(id string) (AudienceClient, bool) {
	i := slices.IndexFunc(a.Clients, func(c AudienceClient) bool { return c.ID == id })
	if i < 0 {
		return AudienceClient{}, false
	}
	return a.Clients[i], true
}

// SignsIn reports whether people may sign in here for a client that wants to know who they are: the
// operator has registered it with the scope openid, and it has credentials (AS-244).
func (c *Client) SignsIn() bool { return c.Operated() && !c.Public() && c.Scopes.Has(oauth.OpenID) }
