// Package account is what people see and do on their account page, as values: what they have
// connected, where they are signed in, and how each of it ends.
package account

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Page shows people their accounts, and acts for them.
type Page struct {
	Store      Store
	Browsers   *entry.Browsers
	Catalog    *catalogue.Catalogue
	Identities Identities // nil: accounts at providers are not shown
	Issuers    Issuers    // nil: no grant rests on an assertion
	Factors    entry.SecondFactors
	Notices    *notice.Notifier
	Audit      *audit.Recorder
	Now        func() time.Time
}

// Store is what Page needs of the store.
type Store interface {
	storage.Connections
	storage.ProgramKeys
	storage.UserSessions
	storage.Stops
	CutNode(ctx context.Context, id, grantID string, now time.Time) (storage.Node, error)
	Nodes(ctx context.Context, grantIDs []string, now time.Time) ([]storage.Node, error)
	Client(ctx context.Context, id string) (storage.Client, error)
	Upstream(ctx context.Context, id string) (storage.Upstream, error)
	WithdrawGrant(ctx context.Context, grantID string, by storage.RevokedBy, now time.Time) error
}

// Issuers are the issuers of assertions.
type Issuers interface {
	// IssuerOf returns the issuer of a trust entry, "" when there is no such entry any more.
	IssuerOf(ctx context.Context, entryID string) (string, error)
}

// What the page shows at once. It stays below 50 KB with everything; more is on further pages.
const (
	PageSize   = 5 // connections
	PageKeys   = 3
	MaxSignIns = 5
)

// Places say after which grant each list begins; "" is its beginning.
type Places struct{ Connections, Keys string }

// View is what the page shows.
type View struct {
	Visit       storage.Visit
	Identities  []storage.Identity
	Connections []Connection
	Keys        []Connection // for programs
	Next        Places
	SignIns     []storage.Session
	MoreSignIns bool
}

// Connection is an application that the person has connected.
type Connection struct {
	storage.Connection
	Client   storage.Client   // with the ID alone when nothing else is known any more
	Resource storage.Resource // with the URI alone when the server was removed
	// Account is the account at a provider that the grant rests on; the zero value: none.
	Account storage.Identity
	Issuer  string // of the assertion that the grant rests on; "": none, or it is trusted no more
	Helpers int    // how many there are now; View alone counts them
}

// View reads the page of the person who is signed in in the browser; nil when no person is signed in.
func (a *Page) View(ctx context.Context, token storage.Hash, from Places) (*View, error) {
	visit, err := a.Browsers.Visit(ctx, token, storage.VisitKey{})
	if err != nil || visit == nil {
		return nil, err
	}
	v, now := &View{Visit: *visit}, a.Now()
	if a.Identities != nil {
		if v.Identities, err = a.Identities.Identities(ctx, visit.User.ID); err != nil {
			return nil, refusal.Protocol(err)
		}
	}
	page, err := a.Store.Connections(ctx, visit.User.ID, from.Connections, now, PageSize+1)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	page, v.Next.Connections = first(page, PageSize)
	if v.Connections, err = a.connections(ctx, page); err != nil {
		return nil, err
	}
	keys, err := a.Store.ProgramKeys(ctx, visit.User.ID, now)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	keys, v.Next.Keys = first(after(keys, from.Keys), PageKeys)
	if v.Keys, err = a.connections(ctx, keys); err != nil {
		return nil, err
	}
	if err := a.addAccounts(ctx, v.Connections, v.Identities); err != nil {
		return nil, err
	}
	if err := a.count(ctx, v.Connections, v.Keys); err != nil {
		return nil, err
	}
	if v.SignIns, err = a.Store.Sessions(ctx, visit.User.ID, now, MaxSignIns+1); err != nil {
		return nil, refusal.Unavailable(err)
	}
	if len(v.SignIns) > MaxSignIns {
		v.SignIns, v.MoreSignIns = v.SignIns[:MaxSignIns], true
	}
	return v, nil
}

// first returns the first n of a list, and the id after which the next page begins; "" when there is
// none.
func first(all []storage.Connection, n int) (page []storage.Connection, next string) {
	if len(all) <= n {
		return all, ""
	}
	return all[:n], all[n-1].ID
}

// after returns the part of a list that follows a grant, or all of it when the grant is not in the
// list or is the last one.
func after(all []storage.Connection, id string) []storage.Connection {
	i := slices.IndexFunc(all, func(c storage.Connection) bool { return c.ID == id })
	if i+1 == len(all) {
		return all
	}
	return all[i+1:]
}

func (a *Page) connections(ctx context.Context, page []storage.Connection) ([]Connection, error) {
	catalog, err := a.Catalog.Load(ctx)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	known := map[string]storage.Client{}
	out := make([]Connection, 0, len(page))
	for _, c := range page {
		client, ok := known[c.ClientID]
		if !ok {
			if client, err = a.client(ctx, c.ClientID); err != nil {
				return nil, err
			}
			known[c.ClientID] = client
		}
		resource, ok := catalog.Lookup(c.Resource)
		if !ok {
			resource = storage.Resource{URI: c.Resource}
		}
		issuer, err := a.issuer(ctx, c.TrustID)
		if err != nil {
			return nil, err
		}
		out = append(out, Connection{Connection: c, Client: client, Resource: resource, Issuer: issuer})
	}
	return out, nil
}

// issuer is that of the assertion which a grant rests on (AS-232).
func (a *Page) issuer(ctx context.Context, entry string) (string, error) {
	if entry == "" || a.Issuers == nil {
		return "", nil
	}
	issuer, err := a.Issuers.IssuerOf(ctx, entry)
	if err != nil {
		return "", refusal.Unavailable(err)
	}
	return issuer, nil
}

// addAccounts says which of the person's accounts at providers the grants rest on (PE-09).
func (a *Page) addAccounts(ctx context.Context, page []Connection, all []storage.Identity) error {
	known := map[string]storage.Identity{}
	for i, c := range page {
		if c.UpstreamID == "" || len(all) == 0 {
			continue
		}
		id, ok := known[c.UpstreamID]
		if !ok {
			up, err := a.Store.Upstream(ctx, c.UpstreamID)
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				return refusal.Unavailable(err)
			}
			for _, one := range all {
				if err == nil && one.Connector == up.Connector && one.Subject == up.Subject {
					id = one
				}
			}
			known[c.UpstreamID] = id
		}
		page[i].Account = id
	}
	return nil
}

// client is what is stored of a client. Its document is not read again to show what was allowed.
func (a *Page) client(ctx context.Context, id string) (storage.Client, error) {
	c, err := a.Store.Client(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked):
		return storage.Client{ID: id}, nil
	case err != nil:
		return c, refusal.Unavailable(err)
	}
	return c, nil
}

// Outcome is what an act has come to.
type Outcome string

// The outcomes of acts. They name texts of the page.
const (
	Disconnected Outcome = "disconnected"
	Narrowed     Outcome = "narrowed"
	Paused       Outcome = "paused"
	Resumed      Outcome = "resumed"
	Ended        Outcome = "ended"
	OthersEnded  Outcome = "others_ended"
	Gone         Outcome = "gone" // what the form names is over, or was never there
	HelperCut    Outcome = "cut"
	Wider        Outcome = "wider" // a permission that the application has not
)

// Person is who acts: the browser's session, and the user whom the form was made for.
type Person struct {
	Token  storage.Hash
	UserID string
}

// check makes sure that the browser is the person's still. Access is taken away also while a
// provider cannot be asked, so that is not waited for.
func (a *Page) check(ctx context.Context, p Person) (storage.Visit, error) {
	v, err := a.Browsers.Visit(ctx, p.Token, storage.VisitKey{})
	switch {
	case err != nil:
		return storage.Visit{}, err
	case v == nil || v.User.ID != p.UserID:
		return storage.Visit{}, entry.ErrAnotherPerson
	}
	return *v, nil
}

// connection finds a grant of the person. What is another person's is unknown (PE-08).
func (a *Page) connection(ctx context.Context, p Person, id string) (storage.Connection, error) {
	if _, err := a.check(ctx, p); err != nil {
		return storage.Connection{}, err
	}
	c, err := a.Store.Connection(ctx, p.UserID, id, a.Now())
	if err == nil {
		audit.Note(ctx, audit.Grant(c.Grant))
	}
	return c, err
}

// Disconnect ends a grant by the verb of the command line, and forgets the consent behind it. When
// it returns, no token of the grant is good any more (PE-09).
func (a *Page) Disconnect(ctx context.Context, p Person, id string) (Outcome, error) {
	c, err := a.connection(ctx, p, id)
	if err == nil {
		err = a.Store.WithdrawGrant(ctx, c.ID, storage.ByPerson, a.Now())
	}
	c.RevokedAt, c.RevokedBy = a.Now(), storage.ByPerson
	return a.outcome(ctx, Disconnected, err, audit.GrantRevoked, c)
}

// Narrow leaves a grant the scopes to, and no others (PE-10).
func (a *Page) Narrow(ctx context.Context, p Person, id string, to oauth.Scopes) (Outcome, error) {
	c, err := a.connection(ctx, p, id)
	if err == nil {
		err = a.Store.NarrowGrant(ctx, p.UserID, id, to, a.Now())
	}
	if errors.Is(err, storage.ErrWider) {
		return Wider, nil
	}
	return a.outcome(ctx, Narrowed, err, audit.GrantNarrowed, c, slog.String("scope", to.String()))
}

// Pause has a grant give nothing until it is resumed.
func (a *Page) Pause(ctx context.Context, p Person, id string) (Outcome, error) {
	c, err := a.connection(ctx, p, id)
	if err == nil {
		err = a.Store.PauseGrant(ctx, p.UserID, id, a.Now())
	}
	return a.outcome(ctx, Paused, err, audit.GrantPaused, c)
}

// Resume ends a pause. It gives access, as making a key does: entry.ErrProve without a proof of the
// last minutes, and the person is told (PE-04).
func (a *Page) Resume(ctx context.Context, p Person, id string) (Outcome, error) {
	v, err := a.Browsers.FreshVisitOf(ctx, p.Token, p.UserID)
	if err == nil {
		err = entry.Sufficient(ctx, a.Factors, v)
	}
	if err != nil {
		return "", err
	}
	c, err := a.connection(ctx, p, id)
	if err == nil {
		err = a.Store.ResumeGrant(ctx, p.UserID, id, a.Now())
	}
	outcome, err := a.outcome(ctx, Resumed, err, audit.GrantResumed, c)
	if outcome == Resumed && !c.PausedAt.IsZero() {
		client, _ := a.client(ctx, c.ClientID) // whose id is told when its name cannot be read
		a.Notices.Tell(ctx, p.UserID, notice.Change{Kind: notice.Resumed, Detail: cmp.Or(client.Name, c.ClientID)})
	}
	return outcome, err
}

func (a *Page) outcome(
	ctx context.Context, done Outcome, err error, event string, c storage.Connection, more ...slog.Attr,
) (Outcome, error) {
	var ours *oauth.Error
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return Gone, nil
	case errors.As(err, &ours):
		return "", err
	case err != nil:
		return "", refusal.Unavailable(err)
	}
	a.Audit.Record(ctx, event, append(more, audit.Grant(c.Grant), slog.String("client_id", c.ClientID))...)
	return done, nil
}
