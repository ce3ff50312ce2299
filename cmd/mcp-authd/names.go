package main

import "github.com/mcp-authd/mcp-authd/internal/admin"

// names returns the names of accounts and clients by ID.
func (a *app) names() *admin.Names { return (&admin.Service{Store: a.store}).Names() }
