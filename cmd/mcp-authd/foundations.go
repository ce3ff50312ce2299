package main

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/storage"
)

// foundations finds what grants rest on.
type foundations struct {
	store storage.Upstreams
	known map[string]string
}

// of returns the connector whose session a grant rests on: "" for none.
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
