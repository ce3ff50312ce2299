package grant

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Prefixes tell people and scanners what a value is.
const (
	Prefix     = "grt_"   // of the id of a grant
	CodePrefix = "mcpac_" // of a code
	// BoundCodePrefix is that of a code that is bound to a key (RFC 9449 §10). A server of an earlier
	// version finds no challenge that fits one.
	BoundCodePrefix = "mcpab_"
)

// Approval is a person's yes to an authorization request.
type Approval struct {
	Session    storage.Hash // of the browser that it was given in
	UserID     string
	AuthTime   time.Time
	Remembered oauth.Scopes // the earlier yes that it rests on; nil: it was given just now
	Declined   oauth.Scopes // an earlier yes to these is taken back
	// Code is that of the page on which it was given, see NewCode. "": of no page.
	Code  string
	Shown *Shown // by that page, for the audit

	Client storage.Client
	// RedirectURI is where the answer goes; Sent is what the request said, "" when it named none.
	RedirectURI, Sent string
	Challenge         string // RFC 7636 §4.2, S256
	Key               string // thumbprint of the key that the code is bound to (RFC 9449 §10); "": none
	Resource          string
	Scopes            oauth.Scopes
	Nonce             string // of the request, for its ID token; may be ""
	Clearance         string // the id of the clearance that goes over to the grant; "": none
}

// Shown is what a page said of a request that a person has approved on it.
type Shown struct {
	Client   string // name
	Place    string // where the answer goes, such as a host
	Resource string // name
	Scopes   string // each with the words for it
	Digest   string // of the words for resource and scopes
}

// attrs are the fields of the audit. The digest is of all words, which may be longer than a field.
func (s *Shown) attrs() slog.Attr {
	return slog.Group("", slog.String("shown_client", s.Client), slog.String("shown_place", s.Place),
		slog.String("shown_resource", s.Resource), slog.String("shown_scopes", s.Scopes),
		slog.String("shown_digest", s.Digest))
}

// DeviceApproval is a person's yes to the request of a device.
type DeviceApproval struct {
	Session  storage.Hash // of the browser that it was given in
	UserID   string
	AuthTime time.Time
	Client   storage.Client
	Request  storage.Device
	Scopes   oauth.Scopes
	Shown    *Shown // by the page, for the audit
}

// ErrSignedOut is returned for an approval whose session has ended, or is another person's.
var ErrSignedOut = errors.New("authserver: no person is signed in")

// ApprovalStore is what Approvals needs of the store.
type ApprovalStore interface {
	storage.Approvals
	ApproveDevice(ctx context.Context, a storage.Approval) error
}

// Approvals makes approvals grants.
type Approvals struct {
	Store    ApprovalStore
	CodeTTL  time.Duration
	GrantTTL time.Duration // however often the tokens of a grant are refreshed
	Audit    *audit.Recorder
	Now      func() time.Time
}

// ErrAnswered is returned for a page that was answered before, when its code was redeemed or has
// expired, or when the choice is another one.
var ErrAnswered = errors.New("authserver: the page was answered before")

// NewCode returns a new code for a page. A page has one code, so it makes one grant; a form that is sent
// twice, as by a double click, gets the same answer twice.
func NewCode() string { return codeOf(secrets.ID(Prefix)) }

// Approve creates the grant and its code, in one storage call. ErrSignedOut; ErrAnswered;
// storage.ErrChanged when the client or the earlier consent is no longer the same; an
// *oauth.Error.
func (g *Approvals) Approve(ctx context.Context, a Approval) (code string, err error) {
	code = cmp.Or(a.Code, NewCode())
	if a.Key != "" {
		code = BoundCodePrefix + strings.TrimPrefix(code, CodePrefix)
	}
	code = withNonce(code, a.Nonce)
	approval := g.approval(a, grantOf(code))
	approval.Clearance = a.Clearance
	approval.Code = storage.Code{
		Hash:        secrets.Hash(code),
		RedirectURI: a.Sent,
		Challenge:   boundChallenge(a.Challenge, a.Key),
		ExpiresAt:   approval.Now.Add(g.CodeTTL),
	}
	if a.Code != "" {
		approval.PageUntil = approval.Now.Add(pageTTL)
	}
	switch err := g.Store.Approve(ctx, approval); {
	case errors.Is(err, storage.ErrExists):
		return code, g.again(ctx, approval)
	case err != nil:
		return "", approvalError(err)
	}
	g.record(ctx, approval, a.Shown)
	return code, nil
}

// pageTTL is longer than the form of a page can be sent, and than a sign-in at a provider after it takes.
const pageTTL = 2 * time.Hour

// Deny keeps that the page with a code was answered by a no: nothing can be approved on it. ErrAnswered
// when it was approved; an *oauth.Error.
func (g *Approvals) Deny(ctx context.Context, code string) error {
	id := grantOf(code)
	if id == "" {
		return nil // of a page without a code
	}
	switch err := g.Store.Deny(ctx, id, g.Now().Add(pageTTL)); {
	case errors.Is(err, storage.ErrExists):
		return ErrAnswered
	case err != nil:
		return refusal.Unavailable(err)
	}
	return nil
}

// again answers a form that was sent before. After a double click the browser shows the second answer
// alone, so that is the first one again while its code can be redeemed.
func (g *Approvals) again(ctx context.Context, a storage.Approval) error {
	waits, err := g.Store.Approved(ctx, a)
	switch {
	case err != nil:
		return refusal.Unavailable(err)
	case !waits:
		return ErrAnswered
	}
	return nil
}

// approval is an approval as the store takes it, without its code.
func (g *Approvals) approval(a Approval, id string) storage.Approval {
	now := g.Now()
	return storage.Approval{
		Session:    a.Session,
		Client:     &a.Client,
		Place:      oauth.RedirectPlace(a.RedirectURI),
		Material:   a.Client.Material(),
		Unplaced:   a.Client.Operated(),
		Remembered: a.Remembered,
		Declined:   a.Declined,
		Grant: storage.Grant{
			ID:        id,
			ClientID:  a.Client.ID,
			UserID:    a.UserID,
			Scopes:    a.Scopes,
			Resource:  a.Resource,
			AuthTime:  a.AuthTime,
			CreatedAt: now,
			ExpiresAt: now.Add(g.GrantTTL),
		},
		Now: now,
	}
}

// ApproveDevice decides the request of a device: it creates the grant, whose code is the device
// code. ErrSignedOut; storage.ErrSpent when the request was decided before; storage.ErrExpired;
// storage.ErrChanged when the client is no longer the same; an *oauth.Error.
func (g *Approvals) ApproveDevice(ctx context.Context, a DeviceApproval) error {
	approval := g.approval(Approval{
		Session: a.Session, UserID: a.UserID, AuthTime: a.AuthTime, Client: a.Client,
		Resource: a.Request.Resource, Scopes: a.Scopes,
	}, secrets.ID(Prefix))
	approval.Place = storage.DevicePlace
	approval.Code = storage.Code{Hash: a.Request.Code, Challenge: deviceChallenge, ExpiresAt: a.Request.ExpiresAt}
	err := g.Store.ApproveDevice(ctx, approval)
	switch {
	case errors.Is(err, storage.ErrSpent), errors.Is(err, storage.ErrExpired):
		return err
	case err != nil:
		return approvalError(err)
	}
	g.record(ctx, approval, a.Shown)
	return nil
}

func (g *Approvals) record(ctx context.Context, a storage.Approval, shown *Shown) {
	attrs := []slog.Attr{
		slog.String("grant", a.Grant.ID), slog.String("user", a.Grant.UserID),
		slog.String("client_id", a.Grant.ClientID), slog.String("resource", a.Grant.Resource),
		slog.String("scope", a.Grant.Scopes.String()),
	}
	if shown != nil {
		attrs = append(attrs, shown.attrs())
	}
	if a.Remembered != nil {
		attrs = append(attrs, slog.Bool("remembered", true))
	}
	g.Audit.Record(ctx, audit.ConsentApproved, attrs...)
}

func approvalError(err error) error {
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return ErrSignedOut
	case errors.Is(err, storage.ErrChanged):
		return err
	case errors.Is(err, storage.ErrPaused): // since the request was examined: it is examined again
		return errors.Join(storage.ErrChanged, err)
	case errors.Is(err, storage.ErrRevoked):
		return oauth.NewError(oauth.UnauthorizedClient, "The client was removed.").Because(err)
	}
	return refusal.Unavailable(err)
}

// codeOf returns a new code for a grant: it begins with the grant's id, by which the store
// finds it, and has 256 random bits. Nothing of the request is in it but the nonce of a sign-in, so the
// challenge cannot be had from it (OAuth 2.1 §4.1.2, AS-50).
func codeOf(grantID string) string {
	return secrets.Token(CodePrefix + strings.TrimPrefix(grantID, Prefix))
}

// isBound reports whether a code says that it is bound to a key. What a code says is covered by its
// hash, so that one that was changed is unknown.
func isBound(code string) bool { return strings.HasPrefix(code, BoundCodePrefix) }

// grantOf returns the grant that a code names, "" for one of an earlier version, which are
// random as a whole.
func grantOf(code string) string {
	code, _, _ = strings.Cut(code, ".") // what follows is the nonce
	named, ok := strings.CutPrefix(code, CodePrefix)
	if !ok {
		named, ok = strings.CutPrefix(code, BoundCodePrefix)
	}
	if named = named[:max(0, len(named)-secrets.TokenSize)]; !ok || named == "" {
		return ""
	}
	return Prefix + named
}
