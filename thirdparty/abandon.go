package thirdparty

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// collectAbandoned takes the departures that have expired: the browser did not come back,
// or the person gave no answer.
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

// abandoned leaves a trace of a departure that has expired: a redirect URI that is not
// registered shows at the provider alone, and this is all that we see of it. What waited
// in it is given back.
func (d *Delegation) abandoned(ctx context.Context, row storage.Departure) {
	if c, waiting, ok := d.openClaim(row); ok {
		d.disclaimed(ctx, c, waiting,
			oauth.NewError(oauth.AccessDenied, "The person did not say whether the account is theirs."))
		return
	}
	var away trip
	content, err := d.ring.Open(tripPurpose, row.Sealed, row.Key[:])
	if err != nil || json.Unmarshal(content, &away) != nil {
		return // sealed by a master key that was taken out
	}
	c, ok := d.byID[away.Provider]
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("errand", string(away.Purpose)), slog.Time("left_at", away.LeftAt)}
	if away.UserID != "" {
		attrs = append(attrs, slog.String("user", away.UserID))
	}
	if away.ClientID != "" {
		attrs = append(attrs, slog.String("client_id", away.ClientID))
	}
	d.record(ctx, audit.ProviderAbandoned, c, attrs...)
}
