package admin

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Application is a program as users know it, with all of its registrations.
type Application struct {
	ID            string    `json:"id"`
	Name          string    `json:"name,omitempty"`
	Verified      bool      `json:"verified" jsonschema:"the operator or the host of its document vouches for the name; otherwise it gave the name itself"`
	Places        []string  `json:"places,omitempty" jsonschema:"where it redirects users to: hosts, schemes, or loopback; or the host of its document"`
	Registrations int       `json:"registrations"`
	Grants        int       `json:"grants"`
	People        int       `json:"people"`
	More          bool      `json:"more,omitempty" jsonschema:"the counts are lower bounds: there may be more grants and users"`
	State         string    `json:"state" jsonschema:"active, paused or blocked"`
	HeldBy        string    `json:"held_by,omitempty"`
	HeldAt        time.Time `json:"held_at,omitzero"`
	CreatedAt     time.Time `json:"created_at,omitzero"`
	LastUsedAt    time.Time `json:"last_used_at,omitzero"`
	Merged        []string  `json:"merged,omitempty" jsonschema:"applications that were merged into this one"`
}

// ApplicationDetails describes an application and its registrations.
type ApplicationDetails struct {
	Application
	Clients     []Client `json:"clients,omitempty" jsonschema:"its registrations, up to 100"`
	MoreClients bool     `json:"more_clients,omitempty"`
}

// ApplicationID names an application.
type ApplicationID struct {
	ID string `json:"id" jsonschema:"the id of the application or of one of its clients, or its name if it is unique"`
}

// ApplicationPair names two applications.
type ApplicationPair struct {
	ApplicationID
	Into string `json:"into" jsonschema:"the application to merge it into"`
}

// The states of an application.
const (
	applicationActive  = "active"
	applicationPaused  = "paused"
	applicationBlocked = "blocked"
)

// Operations on applications.
var (
	ApplicationList = define(Spec{
		Name: "application list", Method: "GET", Path: "/applications", Roles: reading,
		Summary: "List applications, each with all of its registrations",
		Details: "Lists applications with their users and grants. Registrations with the same name and the same\n" +
			"redirect places (hosts, schemes or loopback) are one application. A client of the operator and a\n" +
			"client with a metadata document are each a separate application. client list shows single\n" +
			"registrations.",
	}, (*Service).listApplications)
	ApplicationShow = define(Spec{
		Name: "application show", Method: "GET", Path: "/applications/{id}", Roles: reading,
		Summary: "Show one application and its registrations",
	}, (*Service).showApplication)
	ApplicationRevoke = define(Spec{
		Name: "application revoke", Method: "POST", Path: "/applications/{id}/revoke", Fresh: true, Takes: true,
		Summary: "Revoke all grants of an application, for everyone",
		Details: "Revokes all grants of an application, for all of its registrations, and forgets the consents. Users\n" +
			"can approve the application again; application block prevents that.",
	}, (*Service).revokeApplication)
	ApplicationBlock = define(Spec{
		Name: "application block", Method: "POST", Path: "/applications/{id}/block", Fresh: true, Takes: true,
		Summary: "Block an application and revoke all of its grants",
		Details: "Blocks an application: revokes its grants and refuses its tokens, its registrations and new ones. A\n" +
			"program that registers under another name counts as another application.",
	}, (*Service).blockApplication)
	ApplicationUnblock = define(Spec{
		Name: "application unblock", Method: "POST", Path: "/applications/{id}/unblock", Fresh: true,
		Summary: "Unblock an application",
		Details: "Lets a blocked application register and ask for access again. Revoked grants stay revoked, so users\n" +
			"have to approve the application again.",
	}, (*Service).unblockApplication)
	ApplicationPause = define(Spec{
		Name: "application pause", Method: "POST", Path: "/applications/{id}/pause", Fresh: true, Takes: true,
		Summary: "Pause an application for everyone until it is resumed",
		Details: "Pauses an application for everyone: until it is resumed it gets no tokens, and its tokens are\n" +
			"inactive. Its grants stay.",
	}, (*Service).pauseApplication)
	ApplicationResume = define(Spec{
		Name: "application resume", Method: "POST", Path: "/applications/{id}/resume", Fresh: true,
		Summary: "End the pause of an application",
	}, (*Service).resumeApplication)
	ApplicationDelete = define(Spec{
		Name: "application delete", Method: "DELETE", Path: "/applications/{id}", Fresh: true, Takes: true,
		Summary: "Delete all registrations of an application and revoke its grants",
		Details: "Deletes the clients of an application, as client delete does. The application can register again,\n" +
			"unless it is blocked.",
	}, (*Service).deleteApplication)
	ApplicationMerge = define(Spec{
		Name: "application merge", Method: "POST", Path: "/applications/{id}/merge", Fresh: true, Takes: true,
		Summary: "Merge an application into another one",
		Details: "Merges two applications into one for these operations, including later registrations. If a user\n" +
			"has paused one of them, both are paused. application split ends the merge, but no pause.",
	}, (*Service).mergeApplications)
	ApplicationSplit = define(Spec{
		Name: "application split", Method: "POST", Path: "/applications/{id}/split", Fresh: true,
		Summary: "Undo a merge of two applications",
		Details: "Makes a merged application separate again. Give the id of the application that was merged into the\n" +
			"other, which application show lists. If the two are paused or blocked, both stay paused or blocked.",
	}, (*Service).splitApplication)
)

// shownOfApplication limits how many grants of an application are counted, and clientsOfApplication
// how many registrations are shown.
const (
	shownOfApplication   = 1000
	clientsOfApplication = 100
)

func (s *Service) listApplications(ctx context.Context, in Searched) (Page[Application], error) {
	q, err := in.search(strings.TrimPrefix(in.After, "stored:"))
	if err != nil {
		return Page[Application]{}, err
	}
	var all []storage.FiledApplication
	if in.After == "" {
		configured, err := s.Clients()
		if err != nil {
			return Page[Application]{}, err
		}
		for _, c := range configured {
			if in.fits(c) {
				all = append(all, ofClient(c))
			}
		}
	}
	found, err := s.Store.FiledApplications(ctx, q)
	if err != nil {
		return Page[Application]{}, err
	}
	next := ""
	if limit := in.bounded(); len(found) > limit {
		next, found = "stored:"+found[limit-1].Key, found[:limit]
	}
	out := Page[Application]{Items: []Application{}, Next: next}
	for _, a := range append(all, found...) {
		v, err := s.viewApplication(ctx, a)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, v)
	}
	return out, nil
}

// ofClient returns the application of a client that is grouped with no other client.
func ofClient(c storage.Client) storage.FiledApplication {
	return storage.FiledApplication{
		Key: c.ID, Name: c.Name, Source: cmp.Or(c.Source, storage.SourceCIMD), RedirectURIs: c.RedirectURIs,
		Registrations: 1, CreatedAt: c.CreatedAt, LastUsedAt: c.LastUsedAt,
	}
}

func (s *Service) viewApplication(ctx context.Context, a storage.FiledApplication) (Application, error) {
	v := Application{
		ID: a.Key, Name: a.Name, Registrations: a.Registrations, State: applicationActive, CreatedAt: a.CreatedAt,
		LastUsedAt: a.LastUsedAt, Merged: a.Merged,
		Verified: a.Source == storage.SourceStatic || a.Source == storage.SourceConfig,
	}
	places := a.RedirectURIs
	if a.Source == storage.SourceCIMD {
		v.Verified, places = true, []string{a.Key}
	}
	for _, uri := range places {
		v.Places = append(v.Places, oauth.RedirectPlace(uri))
	}
	slices.Sort(v.Places)
	v.Places = slices.Compact(v.Places)
	if h := a.Hold; h != nil {
		v.State, v.HeldBy, v.HeldAt = applicationPaused, h.By, h.At
		if h.Blocked {
			v.State = applicationBlocked
		}
	}
	n, err := s.Store.ApplicationGrants(ctx, a.Key, s.Now(), shownOfApplication+1)
	v.Grants, v.People = min(n.Grants, shownOfApplication), n.People
	v.More = n.Grants > shownOfApplication
	return v, err
}

// findApplication finds an application by its ID, its name, or the ID of one of its clients.
func (s *Service) findApplication(ctx context.Context, name string) (storage.FiledApplication, error) {
	a, err := s.Store.FiledApplication(ctx, name)
	if !errors.Is(err, storage.ErrNotFound) {
		return a, err
	}
	found, err := s.applicationsNamed(ctx, name)
	switch {
	case err != nil:
		return a, err
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var ids []string
		for _, a := range found {
			v, err := s.viewApplication(ctx, a)
			if err != nil {
				return a, err
			}
			ids = append(ids, a.Key+" ("+strings.Join(v.Places, ", ")+")")
		}
		return a, fault(ErrInvalid, "%q is %s; name one by its id: %s", name,
			label.Count(len(ids), "application", "applications"), strings.Join(ids, ", "))
	}
	c, err := s.NamedClient(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return a, fault(ErrNotFound, "there is no application %q; see: mcp-authd application list", name)
	}
	if err != nil {
		return a, err
	}
	a, err = s.Store.FiledApplication(ctx, c.Application())
	if errors.Is(err, storage.ErrNotFound) { // a configured client, or one that no user has approved
		a, err = ofClient(c), nil
		a.Key = c.Application()
	}
	return a, err
}

// applicationsNamed returns the applications with a name, ignoring case.
func (s *Service) applicationsNamed(ctx context.Context, name string) (named []storage.FiledApplication, err error) {
	for after := ""; name != ""; {
		found, err := s.Store.FiledApplications(ctx, storage.Search{Text: name, After: after, Limit: MaxPage})
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			if strings.EqualFold(a.Name, name) && a.Source != storage.SourcePerson {
				named = append(named, a)
			}
			after = a.Key
		}
		if len(found) < MaxPage {
			break
		}
	}
	return named, nil
}

func (s *Service) showApplication(ctx context.Context, in ApplicationID) (out ApplicationDetails, err error) {
	a, err := s.findApplication(ctx, in.ID)
	if err != nil {
		return out, err
	}
	if out.Application, err = s.viewApplication(ctx, a); err != nil {
		return out, err
	}
	clients, err := s.Store.ApplicationClients(ctx, a.Key, "", clientsOfApplication+1)
	if err != nil {
		return out, err
	}
	if out.MoreClients = len(clients) > clientsOfApplication; out.MoreClients {
		clients = clients[:clientsOfApplication]
	}
	for _, c := range clients {
		out.Clients = append(out.Clients, clientOf(c))
	}
	return out, nil
}

// registrations tells which clients are registrations of one application, also those that nobody has approved, and
// those that were deleted.
type registrations struct {
	s     *Service
	key   string
	known map[string]bool
}

// maxRegistrations bounds what is kept of ids while attempts are watched.
const maxRegistrations = 50_000

// registrationsOf finds an application by its id, by a client of it, or by its name.
func (s *Service) registrationsOf(ctx context.Context, name string) (*registrations, error) {
	r := &registrations{s: s, known: map[string]bool{}}
	a, err := s.findApplication(ctx, name)
	r.key = a.Key
	if errors.Is(err, ErrNotFound) && identifier.IsClient(name) {
		var keys map[string]string // none of its clients may be left
		keys, err = s.Store.ApplicationKeys(ctx, []string{name})
		r.key = keys[name]
	}
	return r, err
}

// has reports for each client ID whether it is a registration of the application, or of an application that counts as
// it. Anyone can send a client ID, so the key of a group of registrations does not count as one.
func (r *registrations) has(ctx context.Context, ids []string) (map[string]bool, error) {
	if len(r.known) > maxRegistrations {
		r.known = map[string]bool{}
	}
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, ok := r.known[id]
		return ok || strings.HasPrefix(id, storage.ApplicationPrefix)
	})
	if len(unknown) == 0 {
		return r.known, nil
	}
	slices.Sort(unknown)
	keys, err := r.s.Store.ApplicationKeys(ctx, slices.Compact(unknown))
	if err != nil {
		return nil, err
	}
	registry, err := r.s.Registry()
	if err != nil {
		return nil, err
	}
	sealed := map[string]string{} // of ids that have no row
	for id, key := range keys {
		if c, ok := registry.Sealed(id); ok && key == id {
			sealed[id] = c.Application()
		}
	}
	as, err := r.s.Store.ApplicationKeys(ctx, slices.Collect(maps.Values(sealed)))
	if err != nil {
		return nil, err
	}
	for id, key := range keys {
		r.known[id] = id != "" && cmp.Or(as[sealed[id]], key) == r.key
	}
	return r.known, nil
}

// counts reports for each key of an application whether it counts as the application.
func (r *registrations) counts(ctx context.Context, keys []string) (map[string]bool, error) {
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return key == "" })
	if len(keys) == 0 {
		return nil, nil
	}
	as, err := r.s.Store.ApplicationKeys(ctx, keys)
	out := make(map[string]bool, len(as))
	for key, counted := range as {
		out[key] = counted == r.key
	}
	return out, err
}
