package thirdparty

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// collectAbandoned takes the requests that have expired: no response came, or the person gave no
// answer.
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

// abandoned records a request that has expired: a redirect URI that is not registered shows an
// error only at the provider, and this is all that we see of it. Tokens of a claim are revoked.
func (d *Delegation) abandoned(ctx context.Context, row storage.Departure) {
	if c, waiting, ok := d.openClaim(row); ok {
		d.disclaimed(ctx, c, waiting,
			oauth.NewError(oauth.AccessDenied, "The person did not say whether the account is theirs."))
		return
	}
	var sent sentRequest
	content, err := d.ring.Open(requestPurpose, row.Sealed, row.Key[:])
	if err != nil || json.Unmarshal(content, &sent) != nil {
		return // sealed by a master key that was taken out
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
