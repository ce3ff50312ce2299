package admin

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// CutMark ends an ID that a table has truncated. Operations treat an ID that ends with it as a
// prefix.
const CutMark = "…"

// FindClient finds a client by ID, by the prefix of an ID that a table has truncated, or by name.
// Text in the form of an ID, and an ID that the database knows, is never a name, because another
// client may have that name.
func (s *Service) FindClient(ctx context.Context, name string) (storage.Client, error) {
	registry, err := s.Registry()
	if err != nil {
		return storage.Client{}, err
	}
	c, err := registry.Current(ctx, name)
	var refused *oauth.Error
	switch {
	case errors.Is(err, dcr.ErrUnread):
		return storage.Client{ID: name}, err
	case errors.Is(err, dcr.ErrHeld): // the client exists, whatever its metadata
		return c, nil
	case errors.Is(err, storage.ErrRevoked):
		return c, fault(ErrNotFound, "the client %q was deleted", name)
	case errors.As(err, &refused): // by its metadata document
		return storage.Client{ID: name}, refused
	case errors.Is(err, storage.ErrNotFound):
		return s.clientNamed(ctx, name)
	}
	return c, err
}

// wasClient reports whether the database has a row for a client, such as one that was removed from
// the configuration.
func (s *Service) wasClient(ctx context.Context, id string) (bool, error) {
	_, err := s.Store.Client(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// NamedClient is FindClient for operations that need only the ID. It also accepts clients whose
// metadata document was not read or is no longer valid.
func (s *Service) NamedClient(ctx context.Context, name string) (storage.Client, error) {
	c, err := s.FindClient(ctx, name)
	var refused *oauth.Error
	if errors.Is(err, dcr.ErrUnread) || errors.As(err, &refused) {
		return c, nil
	}
	return c, err
}

// ReadClient is FindClient, but fetches a document that the server has not read yet.
func (s *Service) ReadClient(ctx context.Context, name string) (storage.Client, error) {
	c, err := s.FindClient(ctx, name)
	if errors.Is(err, dcr.ErrUnread) {
		registry, failed := s.Registry()
		if failed != nil {
			return c, failed
		}
		c, err = registry.Fetch(ctx, name)
	}
	var refused *oauth.Error
	if errors.As(err, &refused) {
		return c, fault(ErrConflict, "%s", refused.Description)
	}
	return c, err
}

// clientNamed finds the only client with a name, or with an ID that starts with a truncated one.
func (s *Service) clientNamed(ctx context.Context, name string) (found storage.Client, err error) {
	none := fault(ErrNotFound, "there is no client %q; see: mcp-authd client list", name)
	start, wasCut := strings.CutSuffix(name, CutMark)
	if identifier.IsClient(name) && !wasCut {
		return found, none
	}
	if was, err := s.wasClient(ctx, name); err != nil || was {
		return found, cmp.Or(err, none)
	}
	all, err := s.AllClients(ctx)
	if err != nil {
		return found, err
	}
	var ids []string
	for _, c := range all {
		// Users name their own API keys, and could take the name of another client.
		named := !wasCut && name != "" && strings.EqualFold(c.Name, name) && c.Source != storage.SourcePerson
		if named || wasCut && start != "" && strings.HasPrefix(c.ID, start) {
			found, ids = c, append(ids, c.ID)
		}
	}
	switch len(ids) {
	case 0:
		return found, none
	case 1:
		return found, nil
	}
	return storage.Client{}, fault(ErrInvalid, "%q is %s; name one by its id: %s", name,
		label.Count(len(ids), "client", "clients"),
		strings.Join(ids, " "))
}

// AllClients returns the clients of the configuration and of the store.
func (s *Service) AllClients(ctx context.Context) ([]storage.Client, error) {
	all, err := s.Clients()
	if err != nil {
		return nil, err
	}
	stored, err := toTheEnd(
		func(after string, limit int) ([]storage.Client, error) { return s.Store.ListClients(ctx, after, limit) },
		func(c storage.Client) string { return c.ID },
	)
	for _, c := range stored {
		if !ofConfig(c) {
			all = append(all, c)
		}
	}
	return all, err
}

// ofConfig reports whether a row belongs to a client that is or was configured.
func ofConfig(c storage.Client) bool { return c.Source == storage.SourceConfig }

// Names maps the IDs of accounts and clients to their names.
type Names struct {
	store interface {
		storage.Users
		storage.Clients
	}
	registry *dcr.Registry // nil: not there
	known    map[string]string
}

// Names reads names as they are asked for, each once.
func (s *Service) Names() *Names {
	n := &Names{store: s.Store, known: map[string]string{}}
	if s.Registry != nil {
		n.registry, _ = s.Registry() // without it, some have no name
	}
	return n
}

// User returns the name of an account.
func (n *Names) User(ctx context.Context, id string) string {
	return n.of(id, func() (string, error) {
		u, err := n.store.User(ctx, id)
		return u.Name, err
	})
}

// Client returns the name of a client.
func (n *Names) Client(ctx context.Context, id string) string {
	return n.of(id, func() (string, error) {
		c, err := n.store.Client(ctx, id)
		if err != nil && n.registry != nil {
			if sealed, ok := n.registry.Sealed(id); ok {
				return sealed.Name, nil
			}
		}
		return c.Name, err
	})
}

// Holder returns the user and the client that hold a grant. A workload has no user.
func (n *Names) Holder(ctx context.Context, g storage.Grant) string {
	client := n.Client(ctx, g.ClientID)
	if g.UserID == "" {
		return client
	}
	return n.User(ctx, g.UserID) + ", " + client
}

// of returns the name for an ID, or the ID itself if it has no name, so that lists can always be
// shown.
func (n *Names) of(id string, read func() (string, error)) string {
	if name, ok := n.known[id]; ok {
		return name
	}
	name, err := read()
	if err != nil || name == "" {
		name = id
	}
	n.known[id] = name
	return name
}
