package account

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/storage"
)

// row is the key of the connections that the page shows as one: those of an application to an MCP
// server. Paused connections, and connections through an organization, are separate, because the
// page offers other actions for them.
type row struct {
	resource, application, trust string
	paused                       bool
}

// readSize is the number of connections per storage call.
const readSize = 200

// applications returns the connections of a user, one per row, newest first. It adds the clients
// that it reads to known.
func (a *Page) applications(
	ctx context.Context, userID string, known map[string]storage.Client,
) (out []Connection, err error) {
	at := map[row]int{}
	for before := ""; ; {
		page, err := a.Store.Connections(ctx, userID, before, a.Now(), readSize)
		if err != nil {
			return nil, refusal.Unavailable(err)
		}
		for _, c := range page {
			client, err := a.knownClient(ctx, c.ClientID, known)
			if err != nil {
				return nil, err
			}
			r := row{c.Resource, client.Application(), c.TrustID, !c.PausedAt.IsZero()}
			if i, ok := at[r]; ok {
				out[i].join(c)
				continue
			}
			at[r] = len(out)
			out = append(out, Connection{Connection: c, Grants: []string{c.ID}})
		}
		if len(page) < readSize {
			return out, nil
		}
		before = page[len(page)-1].ID
	}
}

// join adds an older connection of the same application.
func (c *Connection) join(older storage.Connection) {
	c.Grants = append(c.Grants, older.ID)
	c.Scopes = slices.Concat(c.Scopes, older.Scopes.Without(c.Scopes))
	if older.UsedAt.After(c.UsedAt) {
		c.UsedAt, c.UsedFrom = older.UsedAt, older.UsedFrom
	}
	if older.LastCall.At.After(c.LastCall.At) {
		c.LastCall = older.LastCall
	}
}

// grantsOf returns the ids of all grants in the row of a grant.
func (a *Page) grantsOf(ctx context.Context, userID, grantID string) ([]string, error) {
	all, err := a.applications(ctx, userID, map[string]storage.Client{})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if slices.Contains(c.Grants, grantID) {
			return c.Grants, nil
		}
	}
	return []string{grantID}, nil // an API key
}

func (a *Page) knownClient(
	ctx context.Context, id string, known map[string]storage.Client,
) (storage.Client, error) {
	if c, ok := known[id]; ok {
		return c, nil
	}
	c, err := a.client(ctx, id)
	if err == nil {
		known[id] = c
	}
	return c, err
}
