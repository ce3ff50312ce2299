package thirdparty

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/storage"
)

// handBack gives the tokens back of sessions that ended where their provider could not be
// asked: by the operator, a sign-out or a sweep (RFC 7009). Each is tried once.
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

// giveBackAll gives back what a row holds.
func (d *Delegation) giveBackAll(ctx context.Context, c *connector, u storage.Upstream) {
	held, err := d.open(u)
	if err != nil {
		return // sealed by a master key that was taken out, or of another provider
	}
	d.giveBack(ctx, c, held.Tokens)
	if held.Renewed != nil {
		d.giveBack(ctx, c, *held.Renewed)
	}
}

// shared reports whether giving back the tokens of one session would end another one of the
// same person, because the provider knows one grant for each.
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
