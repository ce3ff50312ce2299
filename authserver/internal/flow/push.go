package flow

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	// PushedTTL is the lifetime of a pushed request until a browser brings it (RFC 9126 §2.2).
	PushedTTL = time.Minute
	// resumeTTL is how long that browser may use the request, the same as for a form.
	resumeTTL = time.Hour
	// maxPushed is the maximum size of a pushed request in bytes. The sealed request has to fit
	// into a page's URL.
	maxPushed = 4000

	pushedPrefix  = "urn:ietf:params:oauth:request_uri:" // RFC 9126 §2.2
	pushedPurpose = "pushed request"
	resumePurpose = "pushed request of a browser"
)

// Pushes handles pushed authorization requests (RFC 9126). A browser brings the reference once.
// After that, the URL carries the request itself, sealed and bound to that browser.
type Pushes struct {
	Flow   *Flow
	Store  storage.PushedRequests
	Ring   *secrets.Ring
	limits *pushLimiter
}

// NewPushes returns the pushed requests of a flow.
func NewPushes(f *Flow, store storage.PushedRequests, ring *secrets.Ring) *Pushes {
	return &Pushes{Flow: f, Store: store, Ring: ring, limits: newPushLimiter(f.Limits)}
}

// Push is a pushed authorization request (RFC 9126 §2.1).
type Push struct {
	Client storage.Client
	// Unread reports that only the client's id is known: the URL of a document that is not fetched
	// for anonymous requests (AS-154).
	Unread   bool
	Params   url.Values
	Networks []string // sources of the request, for the limits
}

// Push checks a request like one from a browser, stores it, and returns its reference. Its error is
// an *oauth.Error.
func (x *Pushes) Push(ctx context.Context, p Push) (uri string, err error) {
	q := pushedQuery(p)
	if len(q) > maxPushed {
		return "", sentence.NewError(oauth.InvalidRequest, "The request is too long.", "request_long")
	}
	if err := x.check(ctx, p, form.New(q.Values())); err != nil {
		return "", err
	}
	if err := x.limits.take(ctx, p); err != nil {
		return "", err
	}
	uri = secrets.Token(pushedPrefix)
	reference := storage.Hash(secrets.Hash(uri))
	err = x.Store.PutPushedRequest(ctx, storage.PushedRequest{
		Reference: reference,
		ClientID:  p.Client.ID,
		Sealed:    x.Ring.Seal(pushedPurpose, []byte(q), reference[:]),
		ExpiresAt: x.Flow.Now().Add(PushedTTL),
	})
	if err != nil {
		return "", refusal.Unavailable(err)
	}
	x.Flow.Audit.Record(ctx, audit.AuthorizePushed, slog.String("client_id", p.Client.ID))
	return uri, nil
}

// pushedQuery returns the request as a browser would bring it, without client credentials.
func pushedQuery(p Push) form.Query {
	values := form.Foreign(p.Params)
	for _, name := range []string{"client_secret", "client_assertion", "client_assertion_type"} {
		values.Del(name)
	}
	values.Set("client_id", p.Client.ID)
	q := form.Query(values.Encode())
	return q.AsPushed(form.Pushed{Code: grant.NewCode(), Unread: p.Unread})
}

// check examines a request as far as possible without a user. It refuses a request_uri (RFC 9126
// §2.1, AS-228).
func (x *Pushes) check(ctx context.Context, p Push, params form.Params) error {
	if p.Unread {
		return checkParams(params)
	}
	to, err := x.Flow.identify(ctx, params, func(context.Context, string) (storage.Client, error) {
		return p.Client, nil
	})
	if err == nil {
		_, err = x.Flow.validate(ctx, to, params)
	}
	return err
}

// IsPushed reports whether a request_uri has the form of this server's references.
func IsPushed(uri string) bool { return strings.HasPrefix(uri, pushedPrefix) }

var errPushed = sentence.NewError(oauth.InvalidRequest,
	"This sign-in was begun in another browser, has been open for too long, or is not known here. "+
		"Begin again in the application.", "pushed_gone")

// Open returns the request of a reference to the first browser that brings it (RFC 9126 §4,
// AS-242). The same browser may bring it again, for example to reload the page. Its error is an
// *oauth.Error.
func (x *Pushes) Open(ctx context.Context, clientID, uri, browser string) (form.Query, error) {
	if clientID == "" {
		return "", oauth.NewError(oauth.InvalidRequest, "The parameter 'client_id' is missing.")
	}
	request.Of(ctx).Note(slog.String("client_id", form.Cut(clientID, 512)))
	reference, now := storage.Hash(secrets.Hash(uri)), x.Flow.Now()
	sealed, err := x.Store.OpenPushedRequest(ctx, storage.OpenPushed{
		Reference: reference,
		ClientID:  clientID,
		Browser:   secrets.Hash(browser),
		Now:       now,
	})
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrSpent), errors.Is(err, storage.ErrMismatch):
		return "", errPushed.Because(err)
	case err != nil:
		return "", refusal.Unavailable(err)
	}
	plain, err := x.Ring.Open(pushedPurpose, sealed, reference[:])
	q := form.Query(plain)
	pushed := q.Pushed()
	if err != nil || pushed == nil {
		return "", errPushed.Because(err)
	}
	pushed.Browser, pushed.Until = browserMark(browser), now.Add(resumeTTL)
	return q.AsPushed(*pushed), nil
}

// browserMark returns the short name of a browser for sealed content.
func browserMark(id string) string {
	h := secrets.Hash(id)
	return base64.RawURLEncoding.EncodeToString(h[:16])
}

// Resume returns a request that SealPushed sealed, to its browser only. Its error is an
// *oauth.Error.
func (x *Pushes) Resume(sealed, browser string) (form.Query, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", errPushed.Because(err)
	}
	plain, err := x.Ring.Open(resumePurpose, raw, nil)
	q := form.Query(plain)
	pushed := q.Pushed()
	switch {
	case err != nil:
		return "", errPushed.Because(err)
	case pushed == nil || pushed.Browser != browserMark(browser) || !x.Flow.Now().Before(pushed.Until):
		return "", errPushed
	}
	return q, nil
}

// SealPushed returns the query that page URLs carry for a pushed request. It repeats ui_locales in
// the clear, because pages read the languages there.
func SealPushed(ring *secrets.Ring, q form.Query) form.Query {
	v := url.Values{form.ParamResume: {base64.RawURLEncoding.EncodeToString(ring.Seal(resumePurpose, []byte(q), nil))}}
	if locales := q.Values().Get("ui_locales"); locales != "" {
		v.Set("ui_locales", locales)
	}
	return form.Query(v.Encode())
}
