package thirdparty

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const (
	// claimWait is how long a user may take to confirm that an account is theirs.
	claimWait    = 10 * time.Minute
	claimPurpose = "claim"
)

// account is an identity that the user had at the connector when the request was made.
type account struct {
	Subject string `json:"sub"`
	Label   string `json:"label"`
}

// claim is an account that a provider returned and that belongs to no user yet, while the server
// asks the user whether it is theirs. The browser's session at the provider can belong to someone
// else. An attacker can also have placed it there, and could then sign in here with it (RFC 6749
// §10.12).
type claim struct {
	Request delegation.Request `json:"trip"`
	Held    holding            `json:"held"`
	At      time.Time          `json:"at"` // time of the provider's response
}

// LogValue implements slog.LogValuer.
func (claim) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (claim) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (claim) GoString() string { return redacted }

// expected returns the accounts that the provider may return. For a request for more scopes, they
// are the accounts that the user already has at the connector. The hint names the account whose
// tokens would be replaced.
func (d *Delegation) expected(
	ctx context.Context, c *connector, t delegation.Request, replaced storage.Upstream,
) (all []account, hint string, err error) {
	if t.Purpose != delegation.PurposeExtend {
		return nil, "", nil
	}
	ids, err := d.cfg.Store.Identities(ctx, t.UserID)
	if err != nil {
		return nil, "", fmt.Errorf("thirdparty: depart: %w", err)
	}
	for _, id := range ids {
		if id.Connector != c.ID {
			continue
		}
		all = append(all, account{id.Subject, id.Label})
		if hint == "" || id.Subject == replaced.Subject {
			hint = id.Label
		}
	}
	return all, hint, nil
}

// errOtherAccount means that the returned account is not one of the user's accounts at the
// connector.
var errOtherAccount = errors.New("the provider returned another account than the user's")

// recognize refuses an unexpected account if specific accounts were expected.
func (c *connector) recognize(sent sentRequest, p provider.Profile) error {
	if len(sent.Accounts) == 0 ||
		slices.ContainsFunc(sent.Accounts, func(a account) bool { return a.Subject == p.Subject }) {
		return nil
	}
	return c.say(oauth.AccessDenied, sayOtherAccount).Because(errOtherAccount)
}

// question stores an account that belongs to no user until the user answers whether it is theirs.
func (d *Delegation) question(
	ctx context.Context, c *connector, sent sentRequest, held holding,
) (*delegation.Claim, error) {
	ticket, now := secrets.Token(""), d.now()
	held.Source = c.source()
	content, err := json.Marshal(claim{sent.Request, held, now})
	if err != nil {
		return nil, fmt.Errorf("thirdparty: claim: %w", err)
	}
	key := departureKey(ticket, sent.UserID)
	err = d.cfg.Store.PutDeparture(ctx, storage.Departure{
		Key: key, Sealed: d.ring.Seal(claimPurpose, content, key[:]), ExpiresAt: now.Add(claimWait),
	})
	if err != nil {
		d.giveBack(ctx, c, held.Tokens)
		return nil, fmt.Errorf("thirdparty: claim: %w", err)
	}
	return &delegation.Claim{Ticket: ticket, Label: held.Profile.Label, Subject: held.Profile.Subject}, nil
}

// Claim links the account of a ticket to the user, who was shown the account and confirmed it. A
// ticket works once. An *oauth.Error contains the message for the user.
func (d *Delegation) Claim(ctx context.Context, ticket, userID string) (delegation.Result, error) {
	c, waiting, err := d.takeClaim(ctx, ticket, userID)
	if err != nil {
		return delegation.Result{}, err
	}
	sent, out := sentRequest{Request: waiting.Request, asked: true}, delegation.Result{Request: waiting.Request}
	if err = c.admit(waiting.Held.Profile); err != nil { // the configuration changed in the meantime
		d.giveBack(ctx, c, waiting.Held.Tokens)
		err = c.say(oauth.AccessDenied, sayNotAllowed).Because(err)
	} else {
		err = d.arrive(ctx, c, sent, waiting.Held, storage.Session{}, &out)
	}
	if err != nil {
		d.refused(ctx, c, sent, err)
	}
	return out, err
}

// Disclaim discards the account of a ticket: the user said that it is not theirs, or does not want
// it linked. Its tokens are revoked.
func (d *Delegation) Disclaim(ctx context.Context, ticket, userID string) error {
	c, waiting, err := d.takeClaim(ctx, ticket, userID)
	if err != nil {
		return err
	}
	d.disclaimed(ctx, c, waiting, oauth.NewError(oauth.AccessDenied, "The person did not want the account connected."))
	return nil
}

func (d *Delegation) disclaimed(ctx context.Context, c *connector, waiting claim, why *oauth.Error) {
	d.giveBack(ctx, c, waiting.Held.Tokens)
	d.refused(ctx, c, sentRequest{Request: waiting.Request}, why)
}

// takeClaim returns the claim of a ticket, once. The user ID is part of the key, so another user
// cannot use up the ticket.
func (d *Delegation) takeClaim(ctx context.Context, ticket, userID string) (*connector, claim, error) {
	if ticket == "" || userID == "" {
		return nil, claim{}, errNoClaim
	}
	found, err := d.cfg.Store.TakeDeparture(ctx, departureKey(ticket, userID), d.now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, claim{}, errNoClaim
	case errors.Is(err, storage.ErrExpired):
		d.abandoned(ctx, found)
		return nil, claim{}, errNoClaim
	case err != nil:
		return nil, claim{}, fmt.Errorf("thirdparty: claim: %w", err)
	}
	c, waiting, ok := d.openClaim(found)
	if !ok {
		return nil, claim{}, errNoClaim
	}
	return c, waiting, nil
}

func (d *Delegation) openClaim(row storage.Departure) (c *connector, out claim, ok bool) {
	content, err := d.ring.Open(claimPurpose, row.Sealed, row.Key[:])
	if err != nil || json.Unmarshal(content, &out) != nil {
		return nil, claim{}, false
	}
	c, ok = d.byID[out.Request.Provider]
	return c, out, ok && out.Held.Source == c.source()
}

var errNoClaim = sentence.NewError(oauth.InvalidRequest,
	"This question was answered already, or is more than ten minutes old. Nothing was linked. Please begin again.", "no_claim")
