package column

import (
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Application is what a person has taken for one application at an MCP server.
type Application struct {
	Key     string   // storage.Client.Application
	Name    string   // of the client by which it was found; "": nothing is known of it
	Clients []string // ids
}

// SelfRegisteredSources are the sources of the clients of which several may be one application.
const SelfRegisteredSources = "('" + string(storage.SourceDynamic) + "', '" + string(storage.SourceManaged) + "')"

// ApplicationRead is what tells which clients are one application.
const ApplicationRead = "id, name, redirect_uris, source"

// ApplicationRow reads ApplicationRead.
type ApplicationRow struct {
	c                 storage.Client
	redirects, source string
}

// Dest is what to scan into.
func (r *ApplicationRow) Dest() []any { return []any{&r.c.ID, &r.c.Name, &r.redirects, &r.source} }

// Redirects are the redirect URIs as they are stored.
func (r *ApplicationRow) Redirects() string { return r.redirects }

// Client is the record that was read.
func (r *ApplicationRow) Client() (c storage.Client, err error) {
	c = r.c
	c.Source = storage.ClientSource(r.source)
	c.RedirectURIs, err = ParseList[string](r.redirects)
	return c, err
}

// ApplicationOf is the application of a client among those that a person knows. A client of which nothing is
// known, and one that was deleted, is one by itself.
func ApplicationOf(clientID string, known []storage.Client) Application {
	key, name := clientID, ""
	for _, c := range known {
		if c.ID == clientID {
			key, name = c.Application(), c.Name
		}
	}
	out := ApplicationBy(key, clientID, known)
	out.Name = name
	return out
}

// ApplicationBy returns the application with a key among the clients that a person knows. clientID is a client of
// it whatever is known.
func ApplicationBy(key, clientID string, known []storage.Client) Application {
	out := Application{Key: key, Clients: []string{clientID}}
	for _, c := range known {
		if c.ID != clientID && c.Application() == key {
			out.Clients = append(out.Clients, c.ID)
		}
	}
	return out
}

// Narrowing is what the grants of an application lose, each by its id, when they are left the scopes to.
type Narrowing struct {
	Left map[string]oauth.Scopes // of the grants that change; empty: nothing is left, and the grant ends
	Kept oauth.Scopes            // of all of them
}

// Narrow has all grants of an application keep the scopes to, and offline_access. It returns no Left when they
// have no others.
func Narrow(grants []storage.Grant, to oauth.Scopes) (out Narrowing, err error) {
	var all oauth.Scopes
	for _, g := range grants {
		all = all.Union(g.Scopes)
	}
	if len(to.Without(all)) > 0 {
		return out, storage.ErrWider
	}
	offline := oauth.Scopes{oauth.OfflineAccess}
	gone := all.Without(to).Without(offline)
	out.Kept, out.Left = all.Without(gone), map[string]oauth.Scopes{}
	if len(gone) > 0 && len(out.Kept.Without(offline)) == 0 {
		return out, storage.ErrNothing
	}
	for _, g := range grants {
		left := g.Scopes.Without(gone)
		if len(left) == len(g.Scopes) {
			continue
		}
		if len(left.Without(offline)) == 0 {
			left = nil
		}
		out.Left[g.ID] = left
	}
	return out, nil
}
