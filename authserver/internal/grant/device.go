package grant

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// deviceChallenge takes the place of a PKCE challenge. No verifier matches it, so device codes and
// authorization codes cannot be used for each other.
const deviceChallenge = oauth.GrantDeviceCode

// Device is the device authorization grant (RFC 8628 §3.4) at the token endpoint.
type Device struct {
	Store storage.Devices
	Code  *Code // the device code is the code of an approved request
}

var (
	errDeviceCode = oauth.NewError(oauth.InvalidGrant,
		"The device code is not valid: it is unknown, used, or was issued to another client.")
	errPending  = oauth.NewError(oauth.AuthorizationPending, "The person has not decided yet.")
	errTooEarly = oauth.NewError(oauth.SlowDown, "Too many requests: wait five seconds longer between them.")
	errDenied   = sentence.NewError(oauth.AccessDenied, "The person denied the request.", "denied")
	errExpired  = oauth.NewError(oauth.ExpiredToken, "The device code has expired. Start again.")
)

// Reply answers a device that polls (RFC 8628 §3.5). A device that polls too early still gets the
// user's decision.
func (g *Device) Reply(ctx context.Context, client storage.Client, r TokenRequest) (*oauth.TokenResponse, error) {
	switch {
	case !may(client, oauth.GrantDeviceCode):
		return nil, sentence.NewError(oauth.UnauthorizedClient,
			"The client is not registered for the device authorization grant.", "no_device_grant")
	case r.DeviceCode == "":
		return nil, oauth.NewError(oauth.InvalidRequest, "The parameter 'device_code' is missing.")
	}
	resource, err := g.Code.Catalog.Named(ctx, r.Resources)
	if err == nil {
		err = g.Code.Minter.Demand(ctx, resource, r.Proof)
	}
	if err != nil {
		return nil, err
	}
	now, code := g.Code.Minter.Now(), storage.Hash(secrets.Hash(r.DeviceCode))
	p, err := g.Store.PollDevice(ctx, code, client.ID, now)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrMismatch):
		return nil, errDeviceCode.Because(err)
	case err != nil:
		return nil, refusal.Unavailable(err)
	case p.GrantID != "":
		if err := g.Code.Minter.Demand(ctx, p.Resource, r.Proof); err != nil {
			return nil, err // before the code is used up, also if the request names no resource (AS-213)
		}
		return g.redeem(ctx, client, p.Device, resource, r)
	case !p.DecidedAt.IsZero():
		return nil, errDenied
	case !now.Before(p.ExpiresAt):
		return nil, errExpired
	case p.Early:
		return nil, errTooEarly
	}
	return nil, errPending
}

func (g *Device) redeem(
	ctx context.Context, client storage.Client, d storage.Device, resource string, r TokenRequest,
) (*oauth.TokenResponse, error) {
	reply, _, err := g.Code.redeem(ctx, client, storage.RedeemCode{
		Hash:      d.Code,
		GrantID:   d.GrantID,
		Challenge: deviceChallenge,
		Resource:  resource,
		From:      r.From,
	}, r.Proof)
	switch {
	case errors.Is(err, storage.ErrExpired):
		return nil, errExpired.Because(err)
	case errors.Is(err, errCode):
		return nil, errDeviceCode.Because(err)
	}
	return reply, err
}
