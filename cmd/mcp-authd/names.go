package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// person finds an account by name or id.
func (a *app) person(ctx context.Context, name string) (storage.User, error) {
	u, err := a.accounts()
	if err != nil {
		return storage.User{}, err
	}
	account, err := u.Find(ctx, name)
	return account, admin.ExplainUser(err, name)
}

// client finds a client by id, by the beginning of one that a table has cut, or by name.
func (a *app) client(ctx context.Context, name string) (storage.Client, error) {
	registry, err := a.parts().Registry()
	if err != nil {
		return storage.Client{}, err
	}
	c, err := registry.Client(ctx, name)
	var refused *oauth.Error
	switch {
	case errors.Is(err, dcr.ErrUnread):
		return storage.Client{ID: name}, err
	case errors.Is(err, storage.ErrRevoked):
		return c, fmt.Errorf("the client %q was deleted", name)
	case errors.As(err, &refused): // its metadata document
		return storage.Client{ID: name}, refused
	case errors.Is(err, storage.ErrNotFound):
		return a.clientNamed(ctx, name)
	}
	return c, err
}

// namedClient is client for a command that need not know the client: the document of one
// that was not read, or is no good now, names a client all the same.
func (a *app) namedClient(ctx context.Context, name string) (storage.Client, error) {
	c, err := a.client(ctx, name)
	var refused *oauth.Error
	if errors.Is(err, dcr.ErrUnread) || errors.As(err, &refused) {
		return c, nil
	}
	return c, err
}

func (a *app) clientNamed(ctx context.Context, name string) (found storage.Client, err error) {
	all, err := a.clients(ctx)
	if err != nil {
		return found, err
	}
	start, wasCut := strings.CutSuffix(name, cutMark)
	var ids []string
	for _, c := range all {
		// Keys are named by their people, who could take the name of another client.
		named := name != "" && strings.EqualFold(c.Name, name) && c.Source != storage.SourcePerson
		if named || wasCut && start != "" && strings.HasPrefix(c.ID, start) {
			found, ids = c, append(ids, c.ID)
		}
	}
	switch len(ids) {
	case 0:
		return found, fmt.Errorf("there is no client %q; see: mcp-authd client list", name)
	case 1:
		return found, nil
	}
	return storage.Client{},
		fmt.Errorf("%q is %d clients; name one by its id: %s", name, len(ids), strings.Join(ids, " "))
}

// clients returns those of the configuration and of the store.
func (a *app) clients(ctx context.Context) ([]storage.Client, error) {
	all, err := a.parts().Clients()
	if err != nil {
		return nil, err
	}
	stored, err := pages(func(after string) ([]storage.Client, string, error) {
		page, err := a.store.ListClients(ctx, after, pageSize)
		if len(page) > 0 {
			after = page[len(page)-1].ID
		}
		return page, after, err
	})
	for _, c := range stored {
		if c.Source != storage.SourceConfig { // the row of a configured client, or of one that was
			all = append(all, c)
		}
	}
	return all, err
}

// names are what people call accounts and clients, by id.
type names struct {
	store interface {
		storage.Users
		storage.Clients
	}
	known map[string]string
}

func (a *app) names() *names { return &names{a.store, map[string]string{}} }

func (n *names) user(ctx context.Context, id string) string {
	return n.of(id, func() (string, error) {
		u, err := n.store.User(ctx, id)
		return u.Name, err
	})
}

// holder is who has a grant: the person and the client. A workload acts for no person.
func (n *names) holder(ctx context.Context, g storage.Grant) string {
	client := n.client(ctx, g.ClientID)
	if g.UserID == "" {
		return client
	}
	return n.user(ctx, g.UserID) + ", " + client
}

func (n *names) client(ctx context.Context, id string) string {
	return n.of(id, func() (string, error) {
		c, err := n.store.Client(ctx, id)
		return c.Name, err
	})
}

// of returns the name of an id, or the id where there is none: a list is shown all the same.
func (n *names) of(id string, read func() (string, error)) string {
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
