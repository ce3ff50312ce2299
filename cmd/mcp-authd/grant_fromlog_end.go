package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// held identifies a client's access for a user.
type held struct{ userID, clientID, resource string }

// end revokes a live grant again. If its application was withdrawn, its consent is withdrawn again.
func (r *repetitions) end(ctx context.Context, l logged, g storage.Grant, by storage.RevokedBy) {
	r.add(l, func(ctx context.Context) error {
		verb := r.a.Store.RevokeGrant
		if by != storage.ByClient && by != storage.ByReuse {
			switch withdraw, err := r.withdraws(ctx, g, l.cutAt()); {
			case err != nil:
				return err
			case withdraw:
				verb = r.a.Store.WithdrawGrant
			}
		}
		if err := verb(ctx, g.ID, by, r.a.Parts().Now()); err != nil {
			return err
		}
		r.a.Audit.Record(ctx, audit.GrantRevoked, audit.Grant(g), slog.String("client_id", g.ClientID))
		return nil
	}, "grant %s (%s, %s), ended by: %s", g.ID, label.Printable(r.names.Holder(ctx, g)), g.Resource, by)
}

// withdraws reports whether to withdraw the application of a grant: once, and only if its user has
// not given it access again since the cut.
func (r *repetitions) withdraws(ctx context.Context, g storage.Grant, cut time.Time) (bool, error) {
	of := held{g.UserID, g.ClientID, g.Resource}
	if r.withdrawn[of] || g.UserID == "" {
		return false, nil
	}
	r.withdrawn[of] = true
	live, err := r.a.liveGrants(ctx, g.UserID, "", g.Resource)
	if err != nil {
		return false, err
	}
	for _, later := range live {
		if later.CreatedAt.Before(cut) {
			continue
		}
		if same, err := r.sameApplication(ctx, later.ClientID, g.ClientID); err != nil || same {
			return false, err
		}
	}
	return true, nil
}

func (r *repetitions) sameApplication(ctx context.Context, id, other string) (bool, error) {
	if id == other {
		return true, nil
	}
	one, err := r.a.Store.Client(ctx, id)
	if err != nil {
		return false, ignoreGone(err)
	}
	two, err := r.a.Store.Client(ctx, other)
	return err == nil && one.Application() == two.Application(), ignoreGone(err)
}

func ignoreGone(err error) error {
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrRevoked) {
		return nil
	}
	return err
}
