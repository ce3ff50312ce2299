// Package clients finds the client that a request names, and says in the protocol's terms why
// there is none.
package clients

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Known are the clients that are known already.
type Known interface {
	Client(ctx context.Context, id string) (storage.Client, error)
}

// Current are clients whose finder keeps its answers for a while, and can do without.
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
	Documents Documents // nil: clients that are identified by a document are unknown
	// ConfidentialOnly refuses clients without credentials.
	ConfidentialOnly bool
}

// Find resolves a client id.
func (f *Finder) Find(ctx context.Context, id string) (storage.Client, error) {
	c, err := f.Known.Client(ctx, id)
	return f.found(c, err)
}

// Current is Find for a person's answer, and for a client that proves itself, which one that was replaced
// or deleted some seconds ago must not get by.
func (f *Finder) Current(ctx context.Context, id string) (storage.Client, error) {
	known, ok := f.Known.(Current)
	if !ok {
		return f.Find(ctx, id)
	}
	c, err := known.Current(ctx, id)
	return f.found(c, err)
}

// Fetch resolves a client id that is the URL of a metadata document by reading
// the document.
func (f *Finder) Fetch(ctx context.Context, id string) (storage.Client, error) {
	c, err := f.Documents.Fetch(ctx, id)
	return f.found(c, err)
}

// Vouched reports whether the operator knows a client, so that people need no warning.
func (f *Finder) Vouched(c storage.Client) bool {
	return c.Operated() || f.Documents != nil && f.Documents.Vouched(c)
}

// MayFetch reports whether an id is the URL of a document that may be read.
func (f *Finder) MayFetch(id string) bool {
	return f.Documents != nil && (strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://"))
}

// Unfetched is what the error of a resolver is when the document that a client is identified
// by cannot be had. It does not say why: that could tell strangers what there is inside.
type Unfetched interface {
	error
	Unfetched()
}

// found translates what a lookup has found. A protocol error is the resolver's own word
// to the people who run the client.
func (f *Finder) found(c storage.Client, err error) (storage.Client, error) {
	var ours *oauth.Error
	switch {
	case errors.As(err, &ours):
		return c, ours
	case errors.As(err, new(Unfetched)):
		e := oauth.NewError(oauth.TemporarilyUnavailable,
			"The document that describes this application cannot be fetched: "+
				"there is no such server, it does not answer, or it cannot be reached from here.").
			Because(attempt.CauseDocumentAway.Because(err))
		e.RetryAfter = 10 * time.Second
		return c, e
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked):
		return c, oauth.NewError(oauth.InvalidClient,
			"The client is not known to this authorization server. Register again.").
			Because(errors.Join(refusal.ErrUnknownClient, err))
	case err != nil: // the store, or the document that the client is identified by
		e := oauth.NewError(oauth.TemporarilyUnavailable,
			"The client cannot be looked up now. Please try again.").Because(err)
		e.RetryAfter = 2 * time.Second
		return c, e
	case c.Public() && f.ConfidentialOnly && c.Source != storage.SourceCIMD:
		return c, oauth.NewError(oauth.InvalidClient, "Public clients are not accepted by this authorization server.")
	}
	return c, nil
}
