package flow

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// visitor returns the user for whom a request is examined, or nil.
type visitor func(ctx context.Context, consent storage.VisitKey) (*storage.Visit, error)

// browser returns a visitor for the user who is signed in in the browser, with their consent to the
// request.
func (f *Flow) browser(token storage.Hash) visitor {
	return func(ctx context.Context, consent storage.VisitKey) (*storage.Visit, error) {
		return f.Browsers.LiveVisit(ctx, token, consent)
	}
}

// answering returns a visitor for the user who answers a form. The store verifies the user when it
// takes the approval. The user is therefore read only if rules may narrow their scopes, or if their
// sign-in may depend on a provider.
func (f *Flow) answering(token storage.Hash) visitor {
	return func(ctx context.Context, _ storage.VisitKey) (*storage.Visit, error) {
		switch narrows, err := f.Bindings.Narrows(ctx); {
		case err != nil:
			return nil, err
		case !narrows:
			return &storage.Visit{Session: storage.Session{Hash: token}}, nil
		}
		return f.Browsers.LiveVisit(ctx, token, storage.VisitKey{})
	}
}

// known returns a visitor for a user who has just signed in.
func known(v storage.Visit) visitor {
	return func(context.Context, storage.VisitKey) (*storage.Visit, error) { return &v, nil }
}

// noPerson is the visitor for requests that are not narrowed to a user's scopes.
func noPerson(context.Context, storage.VisitKey) (*storage.Visit, error) { return nil, nil }
