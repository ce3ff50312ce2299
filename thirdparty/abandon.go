package thirdparty

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// collectAbandoned takes the authorization requests that expired without a response, and the claims
// that the user did not answer.
func (d *Delegation) collectAbandoned(ctx context.Context) {
	for {
		rows, err := d.cfg.Store.AbandonedDepartures(ctx, d.now(), batch)
		if err != nil {
			if ctx.Err() == nil {
				d.cfg.Logger.WarnContext(ctx, "abandoned departures could not be read", "error", err)
			}
			return
		}
		for _, row := range rows {
			d.abandoned(ctx, row)
		}
		if len(rows) < batch || ctx.Err() != nil {
			return
		}
	}
}

// abandoned records an expired request. An unregistered redirect URI shows an error only at the
// provider, and this record is the only trace of it here. The tokens of a claim are revoked.
func (d *Delegation) abandoned(ctx context.Context, row storage.Departure) {
	if c, waiting, ok := d.openClaim(row); ok {
		d.disclaimed(ctx, c, waiting,
			oauth.NewError(oauth.AccessDenied, "The person did not say whether the account is theirs."))
		return
	}
	var sent sentRequest
	content, err := d.ring.Open(requestPurpose, row.Sealed, row.Key[:])
	if err != nil || json.Unmarshal(content, &sent) != nil {
		return // its master key was removed
	}
	c, ok := d.byID[sent.Provider]
	if !ok {
		return
	}
	attrs := []slog.Attr{audit.Purpose(string(sent.Purpose)), slog.Time("left_at", sent.LeftAt)}
	if sent.UserID != "" {
		attrs = append(attrs, slog.String("user", sent.UserID))
	}
	if sent.ClientID != "" {
		attrs = append(attrs, slog.String("client_id", sent.ClientID))
	}
	d.record(ctx, audit.ProviderAbandoned, c, attrs...)
}
