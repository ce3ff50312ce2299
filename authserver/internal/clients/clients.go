// Package clients finds the client of a request, and returns protocol errors if it cannot.
package clients

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Known finds clients that are already known.
type Known interface {
	Client(ctx context.Context, id string) (storage.Client, error)
}

// Current is implemented by a Known with a cache, to bypass it.
type Current interface {
	Current(ctx context.Context, id string) (storage.Client, error)
}

// Documents reads client id metadata documents.
type Documents interface {
	Fetch(ctx context.Context, id string) (storage.Client, error)
	Vouched(c storage.Client) bool
}

// Finder resolves client ids.
type Finder struct {
	Known     Known
	Documents Documents // nil: clients with a metadata document are unknown
	// ConfidentialOnly refuses clients without credentials.
	ConfidentialOnly bool
}

// Find finds the client with an id.
func (f *Finder) Find(ctx context.Context, id string) (storage.Client, error) {
	c, err := f.Known.Client(ctx, id)
	return f.found(c, err)
}

// Current is Find without the cache, for a user's answer and for client authentication. A client
// that was replaced or deleted seconds ago must not pass.
func (f *Finder) Current(ctx context.Context, id string) (storage.Client, error) {
	known, ok := f.Known.(Current)
	if !ok {
		return f.Find(ctx, id)
	}
	c, err := known.Current(ctx, id)
	return f.found(c, err)
}

// Fetch finds a client whose id is the URL of a metadata document by fetching the document.
func (f *Finder) Fetch(ctx context.Context, id string) (storage.Client, error) {
	c, err := f.Documents.Fetch(ctx, id)
	return f.found(c, err)
}

// Vouched reports whether the operator vouches for a client, so that users need no warning.
func (f *Finder) Vouched(c storage.Client) bool {
	return c.Operated() || f.Documents != nil && f.Documents.Vouched(c)
}

// MayFetch reports whether an id is the URL of a document that may be fetched.
func (f *Finder) MayFetch(id string) bool {
	return f.Documents != nil && (strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://"))
}

// Unfetched is implemented by errors for a client metadata document that could not be fetched. The
// error does not give the reason, which could tell strangers about the internal network.
type Unfetched interface {
	error
	Unfetched()
}

// found returns the protocol error for a failed lookup. A protocol error of the lookup itself is
// for the client's developers and is passed on.
func (f *Finder) found(c storage.Client, err error) (storage.Client, error) {
	var ours *oauth.Error
	switch {
	case errors.As(err, &ours):
		return c, ours
	case errors.As(err, new(Unfetched)):
		e := sentence.NewError(oauth.TemporarilyUnavailable,
			"The document that describes this application cannot be fetched: "+
				"there is no such server, it does not answer, or it cannot be reached from here.", "no_document").
			Because(attempt.CauseDocumentAway.Because(err))
		e.RetryAfter = 10 * time.Second
		return c, e
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked):
		return c, sentence.NewError(oauth.InvalidClient,
			"The client is not known to this authorization server. Register again.", "client_unknown").
			Because(errors.Join(refusal.ErrUnknownClient, err))
	case err != nil: // the store, or the client's metadata document
		e := sentence.NewError(oauth.TemporarilyUnavailable,
			"The client cannot be looked up now. Please try again.", "client_busy").Because(err)
		e.RetryAfter = 2 * time.Second
		return c, e
	case c.Public() && f.ConfidentialOnly && c.Source != storage.SourceCIMD:
		return c, oauth.NewError(oauth.InvalidClient, "Public clients are not accepted by this authorization server.")
	}
	return c, nil
}
