package flow

import (
	"context"

	"github.com/mcp-authd/mcp-authd/storage"
)

// visitor says for whom a request is examined: nil for no person.
type visitor func(ctx context.Context, consent storage.VisitKey) (*storage.Visit, error)

// browser is the person who is signed in in the browser, with their consent to the request.
func (f *Flow) browser(token storage.Hash) visitor {
	return func(ctx context.Context, consent storage.VisitKey) (*storage.Visit, error) {
		return f.Browsers.LiveVisit(ctx, token, consent)
	}
}

// answering is the person who answers a form. The store makes sure of them when it takes the
// approval, so they are looked up only where rules may give them fewer scopes than they were shown, or their
// sign-in may rest on a provider.
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

// known is a person who has just signed in.
func known(v storage.Visit) visitor {
	return func(context.Context, storage.VisitKey) (*storage.Visit, error) { return &v, nil }
}

// noPerson is for requests that are not narrowed to the scopes that a person may have.
func noPerson(context.Context, storage.VisitKey) (*storage.Visit, error) { return nil, nil }
