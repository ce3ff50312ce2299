package main

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/storage"
)

// person finds an account by name or id.
func (a *app) person(ctx context.Context, name string) (storage.User, error) {
	service, err := a.admin()
	if err != nil {
		return storage.User{}, err
	}
	return service.FindUser(ctx, name)
}

// readClient finds a client, and reads its document if the server has not read it yet.
func (a *app) readClient(ctx context.Context, name string) (storage.Client, error) {
	service, err := a.admin()
	if err != nil {
		return storage.Client{}, err
	}
	return service.ReadClient(ctx, name)
}

// names are what people call accounts and clients, by id.
func (a *app) names() *admin.Names { return (&admin.Service{Store: a.store}).Names() }
