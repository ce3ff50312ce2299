package main

import "github.com/mcp-authd/mcp-authd/internal/admin"

// names are what people call accounts and clients, by id.
func (a *app) names() *admin.Names { return (&admin.Service{Store: a.store}).Names() }
