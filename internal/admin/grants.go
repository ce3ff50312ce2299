package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Grant is the access that a user, or an administrator for a machine, gave one client to one MCP
// server.
type Grant struct {
	ID         string    `json:"id"`
	User       string    `json:"user"`
	UserName   string    `json:"user_name"`
	Client     string    `json:"client"`
	ClientName string    `json:"client_name"`
	ProgramKey bool      `json:"program_key,omitempty" jsonschema:"the client is a key that the user made for a program"`
	Resource   string    `json:"resource"`
	Scope      string    `json:"scope"`
	Connector  string    `json:"connector,omitempty" jsonschema:"the provider of the sign-in; the grant ends with the session there"`
	Trust      string    `json:"trust,omitempty" jsonschema:"the trust entry, if it was issued from an assertion"`
	Session    string    `json:"provider_session,omitempty"`
	Upstream   string    `json:"upstream,omitempty" jsonschema:"former name of provider_session"`
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	PausedAt   time.Time `json:"paused_at,omitzero"`

	Helpers []Helper `json:"helpers,omitempty" jsonschema:"only in grant show, and in grant list with tree"`
}

// Which selects grants by names or IDs.
type Which struct {
	User     string `json:"user,omitempty" jsonschema:"only of this user (name or id)"`
	Client   string `json:"client,omitempty" jsonschema:"only to this client (name or id)"`
	Resource string `json:"resource,omitempty" jsonschema:"only for this MCP server (URL)"`
}

// GrantsWanted selects grants to list.
type GrantsWanted struct {
	Paging
	Which
	Tree bool `json:"tree,omitempty" jsonschema:"include helpers (sub-agents) that got reduced tokens from clients"`
}

// GrantID names a grant.
type GrantID struct {
	ID string `json:"id" jsonschema:"the id of the grant, grt_..."`
}

// GrantCount counts grants. It stops counting at a limit.
type GrantCount struct {
	Grants       int  `json:"grants"`
	People       int  `json:"people"`
	Applications int  `json:"applications"`
	More         bool `json:"more,omitempty" jsonschema:"the counts are lower bounds: there may be more"`
	Pauses       int  `json:"pauses,omitempty" jsonschema:"pauses of the requested user"`
}

// GrantTotal counts grants, and names the user, client and MCP server that they were selected by.
type GrantTotal struct {
	GrantCount
	User       string `json:"user,omitempty" jsonschema:"the id of the requested user"`
	UserName   string `json:"user_name,omitempty"`
	Client     string `json:"client,omitempty" jsonschema:"the id of the requested client"`
	ClientName string `json:"client_name,omitempty"`
	Resource   string `json:"resource,omitempty"`
}

// Operations that read grants.
var (
	GrantList = define(Spec{
		Name: "grant list", Method: "GET", Path: "/grants", Roles: reading, Summary: "List live grants",
	}, (*Service).listGrants)
	GrantCounted = define(Spec{
		Name: "grant count", Method: "GET", Path: "/grants/count", Roles: readers,
		Summary: "Count live grants, with users and applications",
		Details: "Counts live grants, their users and their applications. Very many are not counted completely: the\n" +
			"answer then says that there are more.",
	}, (*Service).countGrants)
	GrantShow = define(Spec{
		Name: "grant show", Method: "GET", Path: "/grants/{id}", Roles: reading, Summary: "Show a live grant",
	}, (*Service).showGrant)
)

// selection resolves the names to records. An unknown name is an error, because an empty list would
// look like a result.
func (s *Service) selection(ctx context.Context, w Which) (sel storage.Selection, total GrantTotal, err error) {
	if w.User != "" {
		u, err := s.FindUser(ctx, w.User)
		if err != nil {
			return sel, total, err
		}
		sel.UserID, total.User, total.UserName = u.ID, u.ID, u.Name
	}
	if w.Client != "" {
		c, err := s.NamedClient(ctx, w.Client)
		if err != nil {
			return sel, total, s.Unfinished(ctx, err, func(k storage.Cut) bool { return k.ClientID != "" })
		}
		sel.ClientID, total.Client, total.ClientName = c.ID, c.ID, c.Name
	}
	if w.Resource != "" {
		if sel.Resource, err = oauth.CanonicalResource(w.Resource); err != nil {
			return sel, total, fault(ErrInvalid, "the resource %q: %v", w.Resource, err)
		}
		total.Resource = sel.Resource
	}
	return sel, total, nil
}

func (s *Service) listGrants(ctx context.Context, in GrantsWanted) (Page[Grant], error) {
	sel, _, err := s.selection(ctx, in.Which)
	if err != nil {
		return Page[Grant]{}, err
	}
	limit := in.bounded()
	found, err := s.Store.ListGrants(ctx, sel.UserID, sel.ClientID, in.After, limit+1)
	if err != nil {
		return Page[Grant]{}, err
	}
	var next string
	if len(found) > limit {
		found, next = found[:limit], found[limit-1].ID
	}
	views, err := s.viewGrants(ctx, s.live(found, sel.Resource))
	if err == nil && in.Tree {
		err = s.addHelpers(ctx, views)
	}
	return Page[Grant]{Items: views, Next: next}, err
}

// live returns the grants of a resource that have not expired. The resource "" matches all.
func (s *Service) live(all []storage.Grant, resource string) []storage.Grant {
	now := s.Now()
	return slices.DeleteFunc(all, func(g storage.Grant) bool {
		return !now.Before(g.ExpiresAt) || resource != "" && g.Resource != resource
	})
}

func (s *Service) countGrants(ctx context.Context, in Which) (GrantTotal, error) {
	sel, total, err := s.selection(ctx, in)
	if err != nil {
		return total, err
	}
	some, err := s.SomeGrants(ctx, sel)
	if err != nil {
		return total, err
	}
	total.GrantCount = some.Count()
	pauses, err := s.pausesOf(ctx, sel)
	total.Pauses = len(pauses)
	return total, err
}

func (s *Service) showGrant(ctx context.Context, in GrantID) (Grant, error) {
	g, err := s.FindGrant(ctx, in.ID)
	if err != nil {
		return Grant{}, err
	}
	views, err := s.viewGrants(ctx, []storage.Grant{g})
	if err != nil {
		return Grant{}, err
	}
	err = s.addHelpers(ctx, views)
	return views[0], err
}

// FindGrant finds a grant that is not revoked by its ID, or by the beginning of an ID as a table
// shows it. An administrator who copies such an ID in a hurry must not be told that the grant is
// gone.
func (s *Service) FindGrant(ctx context.Context, id string) (storage.Grant, error) {
	none := fault(ErrNotFound, "there is no live grant %q; see: mcp-authd grant list", id)
	start, wasCut := strings.CutSuffix(id, CutMark)
	if start == "" || wasCut && len(start) < 12 || strings.ContainsFunc(start, notInIDs) {
		return storage.Grant{}, none
	}
	// Two grants are enough to see whether the prefix is unique. They are the first from start on,
	// because no ID contains a character that sorts after a tilde.
	last := len(start) - 1
	page, err := s.Store.ListGrants(ctx, "", "", start[:last]+string(start[last]-1)+"~", 2)
	if err != nil {
		return storage.Grant{}, err
	}
	page = slices.DeleteFunc(page, func(g storage.Grant) bool {
		return g.ID != id && !(wasCut && strings.HasPrefix(g.ID, start))
	})
	if len(page) != 1 {
		return storage.Grant{}, none
	}
	return page[0], nil
}

func notInIDs(r rune) bool { return r <= ' ' || r >= '~' }

// SomeGrants holds the live grants of a selection, up to the number that is shown.
type SomeGrants struct {
	List []storage.Grant
	More bool // there may be more
}

const (
	shownGrants = 1000
	readGrants  = 20 * MaxPage // while searching for grants of one resource
)

// SomeGrants returns the live grants of a selection, up to the number that is shown. Counting a
// million grants would keep an administrator waiting.
func (s *Service) SomeGrants(ctx context.Context, sel storage.Selection) (some SomeGrants, err error) {
	after := ""
	for read := 0; ; read += MaxPage {
		page, err := s.Store.ListGrants(ctx, sel.UserID, sel.ClientID, after, MaxPage)
		if err != nil {
			return some, err
		}
		full := len(page) == MaxPage
		if full {
			after = page[len(page)-1].ID
		}
		some.List = append(some.List, s.live(page, sel.Resource)...)
		if !full {
			return some, nil
		}
		if len(some.List) >= shownGrants || read >= readGrants {
			some.More = true
			return some, nil
		}
	}
}

// Count counts the grants, users and applications.
func (g SomeGrants) Count() GrantCount {
	people, clients := map[string]bool{}, map[string]bool{}
	for _, l := range g.List {
		people[l.UserID], clients[l.ClientID] = true, true
	}
	return GrantCount{Grants: len(g.List), People: len(people), Applications: len(clients), More: g.More}
}

func (s *Service) viewGrants(ctx context.Context, all []storage.Grant) ([]Grant, error) {
	views := make([]Grant, 0, len(all))
	rest, names := foundations{s.Store, map[string]string{}}, s.Names()
	for _, g := range all {
		connector, err := rest.of(ctx, g)
		if err != nil {
			return nil, err
		}
		views = append(views, Grant{
			ID: g.ID, User: g.UserID, UserName: names.User(ctx, g.UserID), Client: g.ClientID,
			ClientName: names.Client(ctx, g.ClientID), ProgramKey: g.ForProgram,
			Resource: g.Resource, Scope: g.Scopes.String(), Connector: connector, Trust: g.TrustID,
			Session: g.UpstreamID, Upstream: g.UpstreamID,
			CreatedAt: g.CreatedAt, ExpiresAt: g.ExpiresAt, PausedAt: g.PausedAt,
		})
	}
	return views, nil
}

// foundations finds the providers that grants depend on.
type foundations struct {
	store storage.Upstreams
	known map[string]string
}

// of returns the connector whose session a grant depends on, or "".
func (f *foundations) of(ctx context.Context, g storage.Grant) (string, error) {
	if g.UpstreamID == "" {
		return "", nil
	}
	if p, ok := f.known[g.UpstreamID]; ok {
		return p, nil
	}
	u, err := f.store.Upstream(ctx, g.UpstreamID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}
	f.known[g.UpstreamID] = u.Connector
	return u.Connector, nil
}
