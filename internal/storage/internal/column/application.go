package column

import (
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Application is a set of clients that a user sees as one application at an MCP server.
type Application struct {
	Key     string   // storage.Client.Application
	Name    string   // of the client that was looked up; "": not known
	Clients []string // ids
}

// SelfRegisteredSources lists the sources of clients that may share an application.
const SelfRegisteredSources = "('" + string(storage.SourceDynamic) + "', '" + string(storage.SourceManaged) + "')"

// ApplicationRead are the columns that determine the application of a client.
const ApplicationRead = "id, name, redirect_uris, source"

// ApplicationRow reads ApplicationRead.
type ApplicationRow struct {
	c                 storage.Client
	redirects, source string
}

func (r *ApplicationRow) Dest() []any { return []any{&r.c.ID, &r.c.Name, &r.redirects, &r.source} }

// Redirects returns the redirect URIs as stored.
func (r *ApplicationRow) Redirects() string { return r.redirects }

func (r *ApplicationRow) Client() (c storage.Client, err error) {
	c = r.c
	c.Source = storage.ClientSource(r.source)
	c.RedirectURIs, err = ParseList[string](r.redirects)
	return c, err
}

// ApplicationOf returns the application of a client among a user's known clients. An unknown or
// deleted client is its own application.
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

// ApplicationBy returns the application with a key among a user's known clients. It always contains
// clientID.
func ApplicationBy(key, clientID string, known []storage.Client) Application {
	out := Application{Key: key, Clients: []string{clientID}}
	for _, c := range known {
		if c.ID != clientID && c.Application() == key {
			out.Clients = append(out.Clients, c.ID)
		}
	}
	return out
}

// Family returns an application and those with other keys that are merged with it, by key.
func Family(app Application, others []string, known []storage.Client) []Application {
	out := []Application{app}
	for _, key := range others {
		if key != app.Key {
			other := ApplicationBy(key, key, known)
			other.Name = app.Name
			out = append(out, other)
		}
	}
	slices.SortFunc(out, func(a, b Application) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// ClientsOf returns the clients of all applications.
func ClientsOf(all []Application) (ids []string) {
	for _, app := range all {
		ids = append(ids, app.Clients...)
	}
	return ids
}

// Narrowing is the result of reducing the scopes of an application's grants.
type Narrowing struct {
	Left map[string]oauth.Scopes // the scopes of each changed grant, by id; empty: the grant ends
	Kept oauth.Scopes            // over all grants
}

// Narrow reduces all grants of an application to the scopes to, and offline_access. It returns no
// Left if they have no other scopes.
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
