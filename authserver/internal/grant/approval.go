package grant

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Prefixes show users and secret scanners the kind of a value.
const (
	Prefix     = "grt_"   // id of a grant
	CodePrefix = "mcpac_" // code
	// BoundCodePrefix starts a code that is bound to a key (RFC 9449 §10). Earlier versions of the
	// server find no challenge that matches such a code.
	BoundCodePrefix = "mcpab_"
)

// Approval is a user's approval of an authorization request.
type Approval struct {
	Session    storage.Hash // of the browser of the approval
	UserID     string
	AuthTime   time.Time
	Remembered oauth.Scopes // the earlier consent that the approval reuses; nil: approved just now
	Declined   oauth.Scopes // revokes an earlier consent to these
	// Code is the code of the approved page, see NewCode. "": no page.
	Code  string
	Shown *Shown // contents of that page, for the audit log

	Client storage.Client
	// RedirectURI is the address for the response. Sent is the redirect_uri of the request, "" if
	// it had none.
	RedirectURI, Sent string
	Challenge         string // RFC 7636 §4.2, S256
	Key               string // thumbprint of the key that the code is bound to (RFC 9449 §10), or ""
	Resource          string
	Scopes            oauth.Scopes
	Nonce             string // of the request, for its ID token; may be ""
	Clearance         string // the id of the tool call approval that moves to the grant, or ""
}

// Shown is the content of a page that a user approved.
type Shown struct {
	Client   string // name
	Place    string // destination of the response, such as a host
	Resource string // name
	Scopes   string // names and descriptions
	Digest   string // of the texts for resource and scopes
}

// attrs returns the fields for the audit log. The digest covers the full texts, which may exceed
// the length of a field.
func (s *Shown) attrs() slog.Attr {
	return slog.Group("", slog.String("shown_client", s.Client), slog.String("shown_place", s.Place),
		slog.String("shown_resource", s.Resource), slog.String("shown_scopes", s.Scopes),
		slog.String("shown_digest", s.Digest))
}

// DeviceApproval is a user's approval of the request of a device.
type DeviceApproval struct {
	Session  storage.Hash // of the browser of the approval
	UserID   string
	AuthTime time.Time
	Client   storage.Client
	Request  storage.Device
	Scopes   oauth.Scopes
	Shown    *Shown // contents of the page, for the audit log
}

// ErrSignedOut is returned for an approval whose session has ended or belongs to another user.
var ErrSignedOut = errors.New("authserver: no person is signed in")

// ApprovalStore lists the storage methods that Approvals uses.
type ApprovalStore interface {
	storage.Approvals
	ApproveDevice(ctx context.Context, a storage.Approval) error
}

// Approvals stores grants for approvals.
type Approvals struct {
	Store    ApprovalStore
	CodeTTL  time.Duration
	GrantTTL time.Duration // total lifetime of a grant, including refreshes
	Audit    *audit.Recorder
	Now      func() time.Time
}

// ErrAnswered is returned for a page that was answered before, if its code was redeemed or has
// expired, or if the choice differs.
var ErrAnswered = errors.New("authserver: the page was answered before")

// NewCode returns a new code for a page. A page has one code and therefore creates one grant. A
// form that is sent twice, for example by a double click, gets the same answer twice.
func NewCode() string { return codeOf(secrets.ID(Prefix)) }

// Approve creates the grant and its code in one storage call. It returns ErrSignedOut, ErrAnswered,
// or storage.ErrChanged if the client or the earlier consent has changed. Other errors are
// *oauth.Errors.
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

// pageTTL exceeds the lifetime of a page's form plus a sign-in at a provider after it.
const pageTTL = 2 * time.Hour

// Deny records that the user denied the request on the page with this code, so that it cannot be
// approved any longer. It returns ErrAnswered if the page was approved, or an *oauth.Error.
func (g *Approvals) Deny(ctx context.Context, code string) error {
	id := grantOf(code)
	if id == "" {
		return nil // a page without a code
	}
	switch err := g.Store.Deny(ctx, id, g.Now().Add(pageTTL)); {
	case errors.Is(err, storage.ErrExists):
		return ErrAnswered
	case err != nil:
		return refusal.Unavailable(err)
	}
	return nil
}

// again answers a form that was sent before. After a double click the browser shows only the second
// answer, so it repeats the first answer as long as the code can be redeemed.
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

// approval returns the stored form of an approval, without its code.
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

// ApproveDevice approves the request of a device: it creates the grant, whose code is the device
// code. It returns ErrSignedOut, storage.ErrSpent if the request was decided before,
// storage.ErrExpired, or storage.ErrChanged if the client has changed. Other errors are
// *oauth.Errors.
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
	case errors.Is(err, storage.ErrPaused): // paused after the examination: examine again
		return errors.Join(storage.ErrChanged, err)
	case errors.Is(err, storage.ErrRevoked):
		return oauth.NewError(oauth.UnauthorizedClient, "The client was removed.").Because(err)
	}
	return refusal.Unavailable(err)
}

// codeOf returns a new code for a grant. It begins with the grant's id, which the store uses to
// find it, and has 256 random bits. Apart from the nonce of a sign-in it contains nothing of the
// request, so the challenge cannot be derived from it (OAuth 2.1 §4.1.2, AS-50).
func codeOf(grantID string) string {
	return secrets.Token(CodePrefix + strings.TrimPrefix(grantID, Prefix))
}

// isBound reports whether a code has the prefix of codes that are bound to a key. The stored hash
// covers the prefix, so a changed code is unknown.
func isBound(code string) bool { return strings.HasPrefix(code, BoundCodePrefix) }

// grantOf returns the id of the grant that a code names. Codes of earlier versions are entirely
// random; for them it returns "".
func grantOf(code string) string {
	code, _, _ = strings.Cut(code, ".") // cuts off the nonce
	named, ok := strings.CutPrefix(code, CodePrefix)
	if !ok {
		named, ok = strings.CutPrefix(code, BoundCodePrefix)
	}
	if named = named[:max(0, len(named)-secrets.TokenSize)]; !ok || named == "" {
		return ""
	}
	return Prefix + named
}
