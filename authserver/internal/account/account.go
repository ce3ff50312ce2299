// Package account reads and changes a user's account page without HTTP: connected applications,
// sessions, and how to end each of them.
package account

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Page reads users' account pages and carries out their actions.
type Page struct {
	Store      Store
	Browsers   *entry.Browsers
	Catalog    *catalogue.Catalogue
	Identities Identities // nil: accounts at providers are not shown
	Issuers    Issuers    // nil: no grant depends on an assertion
	Notices    *notice.Notifier
	Audit      *audit.Recorder
	Now        func() time.Time
}

// Store lists the storage methods that Page uses.
type Store interface {
	storage.Connections
	storage.Pauses
	storage.ProgramKeys
	storage.UserSessions
	storage.Stops
	CutNode(ctx context.Context, id, grantID string, now time.Time) (storage.Node, error)
	Nodes(ctx context.Context, grantIDs []string, now time.Time) ([]storage.Node, error)
	Client(ctx context.Context, id string) (storage.Client, error)
	Upstream(ctx context.Context, id string) (storage.Upstream, error)
	ApplicationKeys(ctx context.Context, clientIDs []string) (map[string]string, error)
	WithdrawGrant(ctx context.Context, grantID string, by storage.RevokedBy, now time.Time) error
	WithdrawApplication(ctx context.Context, grantID string, by storage.RevokedBy, now time.Time) (int, error)
}

// Issuers names the issuers of assertions.
type Issuers interface {
	// IssuerOf returns the issuer of a trust entry, or "" if the entry no longer exists.
	IssuerOf(ctx context.Context, entryID string) (string, error)
}

// Numbers of list entries on the page. The full page stays below 50 KB; further pages show more
// entries.
const (
	PageSize   = 5 // connections
	PageKeys   = 3
	MaxSignIns = 5
	PagePauses = 5
)

// Places are the ids after which each list begins; "" is the beginning.
type Places struct{ Connections, Keys, Pauses string }

// View is the content of the account page.
type View struct {
	Visit       storage.Visit
	Identities  []storage.Identity
	Connections []Connection
	Pauses      []Pause      // of applications that are not connected now
	Keys        []Connection // for programs
	Next        Places
	SignIns     []storage.Session
	MoreSignIns bool
}

// Connection is an application that the person has connected to an MCP server. Those of one application follow each
// other.
type Connection struct {
	storage.Connection
	Whole    Whole            // the zero value for a key for a program
	Client   storage.Client   // with the ID alone when nothing else is known any more
	Resource storage.Resource // with the URI alone when the server was removed
	// Account is the account at a provider that the grant rests on; the zero value: none.
	Account storage.Identity
	Issuer  string   // of the grant's assertion; "": none, or no longer trusted
	Helpers int      // current number; only View counts them
	Grants  []string // ids of all grants that this row combines, including this one
}

// View reads the account page of the browser's user. It returns nil without a signed-in user.
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
	known := map[string]storage.Client{}
	var page []Connection
	v.Connections, v.Next.Connections, page, err = a.page(ctx, visit.User.ID, from.Connections, known)
	if err != nil {
		return nil, err
	}
	if err = a.describe(ctx, v.Connections, known); err != nil {
		return nil, err
	}
	if v.Pauses, v.Next.Pauses, err = a.pauses(ctx, visit.User.ID, from.Pauses, page, known); err != nil {
		return nil, err
	}
	keys, err := a.Store.ProgramKeys(ctx, visit.User.ID, now)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	v.Keys, v.Next.Keys = first(after(each(keys), from.Keys), PageKeys)
	if err = a.describe(ctx, v.Keys, known); err != nil {
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

// first returns the first n entries of a list, and the id after which the next page begins, or "".
func first(all []Connection, n int) (page []Connection, next string) {
	if len(all) <= n {
		return all, ""
	}
	return all[:n], all[n-1].ID
}

// after returns the entries after a grant. It returns the whole list if the grant is not in it or
// is the last one.
func after(all []Connection, id string) []Connection {
	i := slices.IndexFunc(all, func(c Connection) bool { return slices.Contains(c.Grants, id) })
	if i+1 == len(all) {
		return all
	}
	return all[i+1:]
}

// each returns a list with one Connection per grant.
func each(list []storage.Connection) []Connection {
	out := make([]Connection, 0, len(list))
	for _, c := range list {
		out = append(out, Connection{Connection: c, Grants: []string{c.ID}})
	}
	return out
}

// describe fills in the client, resource and issuer of connections. known contains clients that
// were read before.
func (a *Page) describe(ctx context.Context, page []Connection, known map[string]storage.Client) error {
	catalog, err := a.Catalog.Load(ctx)
	if err != nil {
		return refusal.Unavailable(err)
	}
	for i, c := range page {
		if page[i].Client, err = a.knownClient(ctx, c.ClientID, known); err != nil {
			return err
		}
		resource, ok := catalog.Lookup(c.Connection.Resource)
		if !ok {
			resource = storage.Resource{URI: c.Connection.Resource}
		}
		page[i].Resource = resource
		if page[i].Issuer, err = a.issuer(ctx, c.TrustID); err != nil {
			return err
		}
	}
	return nil
}

// issuer returns the issuer of the assertion that a grant depends on (AS-232).
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

// addAccounts fills in the provider accounts that the grants depend on (PE-09).
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

// client returns a stored client. Its metadata document is not fetched to show earlier consents.
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

// Outcome is the result of an action.
type Outcome string

// Outcomes of actions. They are keys of page texts.
const (
	Disconnected Outcome = "disconnected"
	Left         Outcome = "left" // disconnected from one MCP server
	Narrowed     Outcome = "narrowed"
	Paused       Outcome = "paused"
	Resumed      Outcome = "resumed"
	Ended        Outcome = "ended"
	OthersEnded  Outcome = "others_ended"
	Gone         Outcome = "gone" // not found
	HelperCut    Outcome = "cut"
	Wider        Outcome = "wider"   // a scope that the application does not have
	Nothing      Outcome = "nothing" // no scope would be left
	Full         Outcome = "full"    // the limit of paused applications is reached
)

// Person is the acting user: the browser's session, and the user that the form was made for.
type Person struct {
	Token  storage.Hash
	UserID string
}

// check verifies that the browser still belongs to the user. It does not ask the provider, so that
// access can be revoked even if the provider is unavailable.
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

// held is a grant whose application is being changed.
type held struct {
	storage.Connection
	application storage.Application // state before the change
}

// connection finds a grant of the user. Other users' grants count as unknown (PE-08).
func (a *Page) connection(ctx context.Context, p Person, id string) (c held, err error) {
	if _, err := a.check(ctx, p); err != nil {
		return c, err
	}
	if c.Connection, err = a.Store.Connection(ctx, p.UserID, id, a.Now()); err != nil {
		return c, err
	}
	request.Of(ctx).Note(audit.Grant(c.Grant))
	c.application, err = a.Store.GrantApplication(ctx, id, a.Now())
	return c, err
}

// Narrow leaves an application the scopes to, and no others (PE-10).
func (a *Page) Narrow(ctx context.Context, p Person, id string, to oauth.Scopes) (Outcome, error) {
	c, err := a.connection(ctx, p, id)
	if err == nil {
		to, err = a.withRequired(ctx, c, to)
	}
	if err == nil {
		err = a.Store.NarrowGrant(ctx, p.UserID, id, to, a.Now())
	}
	switch {
	case errors.Is(err, storage.ErrWider):
		return Wider, nil
	case errors.Is(err, storage.ErrNothing):
		return Nothing, nil
	}
	return a.outcome(ctx, Narrowed, err, audit.GrantNarrowed, c, slog.String("scope", to.String()))
}

// withRequired adds the scopes of a connection that cannot be left out to the given ones.
func (a *Page) withRequired(
	ctx context.Context, c held, to oauth.Scopes,
) (oauth.Scopes, error) {
	catalog, err := a.Catalog.Load(ctx)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	resource, _ := catalog.Lookup(c.Resource)
	return policy.Kept(resource, c.Scopes, to), nil
}

// Pause refuses all requests of an application until it is resumed.
func (a *Page) Pause(ctx context.Context, p Person, id string) (Outcome, error) {
	c, err := a.connection(ctx, p, id)
	if err == nil {
		err = a.Store.PauseGrant(ctx, p.UserID, id, a.Now())
	}
	if errors.Is(err, storage.ErrFull) {
		return Full, nil
	}
	return a.outcome(ctx, Paused, err, audit.GrantPaused, c)
}

// Resume ends a pause. It gives access, like a new key, so the session must meet
// entry.Browsers.Owed, and the user is notified (PE-04).
func (a *Page) Resume(ctx context.Context, p Person, id string) (Outcome, error) {
	if _, err := a.Browsers.ActingAs(ctx, p.Token, p.UserID, entry.Change); err != nil {
		return "", err
	}
	c, err := a.connection(ctx, p, id)
	if err == nil {
		err = a.Store.ResumeGrant(ctx, p.UserID, id, a.Now())
	}
	outcome, err := a.outcome(ctx, Resumed, err, audit.GrantResumed, c)
	if outcome == Resumed && !c.PausedAt.IsZero() {
		client, _ := a.client(ctx, c.ClientID) // the notice names the id if the name cannot be read
		a.tellResumed(ctx, p.UserID, cmp.Or(client.Name, c.ClientID))
	}
	return outcome, err
}

func (a *Page) tellResumed(ctx context.Context, userID, name string) {
	a.Notices.Tell(ctx, userID, notice.Change{Kind: notice.Resumed, Detail: name})
}

// outcome returns the result of an action and records it: once, however many connections changed.
func (a *Page) outcome(
	ctx context.Context, done Outcome, err error, event string, c held, more ...slog.Attr,
) (Outcome, error) {
	if done, err = result(done, err); err != nil || done == Gone {
		return done, err
	}
	if c.application.Key != "" {
		more = append(more, audit.Application(c.application))
	}
	a.Audit.Record(ctx, event, append(more, audit.Grant(c.Grant), slog.String("client_id", c.ClientID))...)
	return done, nil
}

// result returns done, or Gone if the target does not exist.
func result(done Outcome, err error) (Outcome, error) {
	var ours *oauth.Error
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return Gone, nil
	case errors.As(err, &ours):
		return "", err
	case err != nil:
		return "", refusal.Unavailable(err)
	}
	return done, nil
}
