package thirdparty

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// handBack revokes the tokens of sessions that ended without a request to the provider: by an
// administrator, a sign-out or a sweep (RFC 7009). Each is tried once.
func (d *Delegation) handBack(ctx context.Context) {
	rows, err := d.cfg.Store.TakeHandbacks(ctx, batch)
	if err != nil {
		if ctx.Err() == nil {
			d.cfg.Logger.WarnContext(ctx, "tokens to be given back could not be read", "error", err)
		}
		return
	}
	for _, u := range rows {
		c, known := d.byID[u.Connector]
		if !known || d.shared(ctx, c, u) {
			continue
		}
		d.giveBackAll(ctx, c, u)
	}
}

// giveBackAll revokes all tokens in a row.
func (d *Delegation) giveBackAll(ctx context.Context, c *connector, u storage.Upstream) {
	held, err := d.open(u)
	if err != nil {
		return // its master key was removed, or it belongs to another provider
	}
	d.giveBack(ctx, c, held.Tokens)
	if held.Renewed != nil {
		d.giveBack(ctx, c, *held.Renewed)
	}
}

// shared reports whether revoking the tokens of one session would end another session of the same
// account, because the provider has one grant for both.
func (d *Delegation) shared(ctx context.Context, c *connector, u storage.Upstream) bool {
	if !c.traits.OneGrant {
		return false
	}
	other, err := d.cfg.Store.UpstreamFor(ctx, u.UserID, u.Connector, "")
	if errors.Is(err, storage.ErrNotFound) {
		return false
	}
	return err != nil || other.Subject == u.Subject
}
