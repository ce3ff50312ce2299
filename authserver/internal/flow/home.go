package flow

import (
	"context"

	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// StartPage reads the data of the start page.
type StartPage struct {
	Browsers *entry.Browsers
	Catalog  *catalogue.Catalogue
}

// Home is the content of the start page.
type Home struct {
	Visit     *storage.Visit // nil: not signed in
	Resources []storage.Resource
	EndNotice sentence.Sentence
}

// Home returns the content of the start page for the browser's user.
func (p *StartPage) Home(ctx context.Context, token storage.Hash) (h Home, err error) {
	if h.Visit, err = p.Browsers.Visit(ctx, token, storage.VisitKey{}); err != nil {
		return h, err
	}
	catalog, err := p.Catalog.Load(ctx)
	if err != nil {
		return h, refusal.Unavailable(err)
	}
	h.Resources = catalog.Resources()
	if h.Visit == nil {
		h.EndNotice = p.Browsers.EndNotice(ctx, token)
	}
	return h, nil
}
