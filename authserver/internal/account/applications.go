package account

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Whole is an application with all that the person has connected it to.
type Whole struct {
	Key         string // as which its clients count
	Connections int    // grants
	Servers     int    // MCP servers
	UsedAt      time.Time
}

// row is all that a person sees as one connection: those of an application to an MCP server. Those that are
// paused, or come from an organization, stand apart: the page offers other acts for them.
type row struct {
	resource, application, trust string
	paused                       bool
}

// readSize is the number of connections per storage call, and readMost how many are read for one page. A person with
// more of them can find one application on two pages, with a part of its connections on each.
const (
	readSize = 200
	readMost = 2 * readSize
)

// page returns one page of a person's connections, which begins after a place, the place after which the next one
// begins, or "", and all connections that were read for it. A place is the ID of a grant. If that is not among the
// newest readMost, the ID before which reading begins comes first, with a dot.
func (a *Page) page(
	ctx context.Context, userID, from string, known map[string]storage.Client,
) (page []Connection, next string, all []Connection, err error) {
	before, id, ok := strings.Cut(from, ".")
	if !ok {
		before, id = "", from
	}
	all, rest, err := a.applications(ctx, userID, before, readMost, known)
	if err != nil {
		return nil, "", nil, err
	}
	page, next = whole(after(all, id), PageSize)
	switch {
	case next == "" && rest != "":
		more, err := a.Store.Connections(ctx, userID, rest, a.Now(), 1)
		if err != nil {
			return nil, "", nil, refusal.Unavailable(err)
		}
		if len(more) > 0 {
			next = rest + "."
		}
	case next != "" && before != "":
		next = before + "." + next
	}
	return page, next, all, nil
}

// applications returns up to limit connections of a person with an ID less than before ("": any), one for each row, and
// the ID after which more follow, or "". Those of one application follow each other; the application with the newest
// one is the first. known are the clients that were read for it.
func (a *Page) applications(
	ctx context.Context, userID, before string, limit int, known map[string]storage.Client,
) ([]Connection, string, error) {
	all, rest, err := a.rows(ctx, userID, before, limit, known)
	if err != nil {
		return nil, "", err
	}
	clients := make([]string, 0, len(all))
	for _, c := range all {
		clients = append(clients, c.ClientID)
	}
	keys, err := a.Store.ApplicationKeys(ctx, clients)
	if err != nil {
		return nil, "", refusal.Unavailable(err)
	}
	return together(all, keys), rest, nil
}

// together puts the connections of each application together, and says what all of them are.
func together(all []Connection, keys map[string]string) []Connection {
	of, order := map[string][]Connection{}, []string{}
	for _, c := range all {
		key := keys[c.ClientID]
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], c)
	}
	out := make([]Connection, 0, len(all))
	for _, key := range order {
		w, servers := Whole{Key: key}, map[string]bool{}
		for _, c := range of[key] {
			servers[c.Connection.Resource] = true
			w.Connections += len(c.Grants)
			if c.UsedAt.After(w.UsedAt) {
				w.UsedAt = c.UsedAt
			}
		}
		w.Servers = len(servers)
		for _, c := range of[key] {
			c.Whole = w
			out = append(out, c)
		}
	}
	return out
}

// whole returns up to n connections, and the id after which the next page begins; "" when there is none. An
// application that would not be whole begins the next page, unless it has more than n.
func whole(all []Connection, n int) (page []Connection, next string) {
	if len(all) > n && all[n-1].Whole.Key == all[n].Whole.Key {
		begin := slices.IndexFunc(all, func(c Connection) bool { return c.Whole.Key == all[n].Whole.Key })
		if rest := all[begin:]; begin > 0 && (len(rest) <= n || rest[n].Whole.Key != rest[0].Whole.Key) {
			n = begin
		}
	}
	return first(all, n)
}

// wholeOf is all of the application of a connection, or a key for a program.
func (a *Page) wholeOf(ctx context.Context, userID string, of storage.Connection) (Whole, error) {
	all, _, err := a.applications(ctx, userID, "", math.MaxInt, map[string]storage.Client{})
	if err != nil {
		return Whole{}, err
	}
	for _, c := range all {
		if slices.Contains(c.Grants, of.ID) {
			return c.Whole, nil
		}
	}
	return Whole{Key: of.ClientID, Connections: 1, Servers: 1}, nil
}

// rows returns up to limit connections of a person with an ID less than before, one for each row, newest first, and the
// ID after which more follow, or "".
func (a *Page) rows(
	ctx context.Context, userID, before string, limit int, known map[string]storage.Client,
) (out []Connection, rest string, err error) {
	at := map[row]int{}
	for read := 0; read < limit; read += readSize {
		page, err := a.Store.Connections(ctx, userID, before, a.Now(), readSize)
		if err != nil {
			return nil, "", refusal.Unavailable(err)
		}
		for _, c := range page {
			client, err := a.knownClient(ctx, c.ClientID, known)
			if err != nil {
				return nil, "", err
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
			return out, "", nil
		}
		before = page[len(page)-1].ID
	}
	return out, before, nil
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
	all, _, err := a.applications(ctx, userID, "", math.MaxInt, map[string]storage.Client{})
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

// Disconnect ends all grants of an application, at every MCP server, and forgets the consent behind them. When it
// returns, their tokens are invalid (PE-09).
func (a *Page) Disconnect(ctx context.Context, p Person, id string) (Outcome, error) {
	c, err := a.connection(ctx, p, id)
	var all Whole
	if err == nil {
		all, err = a.wholeOf(ctx, p.UserID, c.Connection)
	}
	if err == nil {
		all.Connections, err = a.Store.WithdrawApplication(ctx, c.ID, storage.ByPerson, a.Now())
	}
	c.RevokedAt, c.RevokedBy = a.Now(), storage.ByPerson
	c.application = storage.Application{Key: all.Key, Connections: all.Connections}
	return a.outcome(ctx, Disconnected, err, audit.GrantRevoked, c, slog.Int("servers", all.Servers))
}

// Leave is Disconnect for one MCP server.
func (a *Page) Leave(ctx context.Context, p Person, id string) (Outcome, error) {
	c, err := a.connection(ctx, p, id)
	if err == nil {
		err = a.Store.WithdrawGrant(ctx, c.ID, storage.ByPerson, a.Now())
	}
	c.RevokedAt, c.RevokedBy = a.Now(), storage.ByPerson
	return a.outcome(ctx, Left, err, audit.GrantRevoked, c)
}
