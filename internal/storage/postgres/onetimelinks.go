package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

const (
	insertLink = "INSERT INTO one_time_links (" + column.LinkColumns +
		", name_key) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14)"
	sameLinks = "user_id = $1 AND name_key = $2 AND kind = $3"

	// lockPerson comes first in every verb that changes links together with their user, including
	// all verbs that end an account. So two transactions cannot deadlock.
	lockPerson = "SELECT id FROM users WHERE id = (SELECT user_id FROM one_time_links WHERE hash = $1) FOR UPDATE"
)

// PutLink implements storage.OneTimeLinks.
func (s *Store) PutLink(ctx context.Context, l storage.OneTimeLink, now time.Time) error {
	return s.tx(ctx, "PutLink", func(ctx context.Context, q querier) error {
		if err := linkable(ctx, q, l); err != nil {
			return err
		}
		same := []any{l.UserID, column.NameKey(l.Name), string(l.Kind)}
		if l.Kind == storage.LinkReset {
			var n int
			err := one(ctx, q, []any{&n}, "SELECT count(*) FROM one_time_links WHERE "+sameLinks+" AND expires_at > $4",
				append(same, column.Millis(now))...)
			if err == nil && n >= storage.MaxResets {
				err = storage.ErrFull
			}
			if err != nil {
				return err
			}
		} else if _, err := q.Exec(ctx, "DELETE FROM one_time_links WHERE "+sameLinks, same...); err != nil {
			return err
		}
		_, err := q.Exec(ctx, insertLink, column.LinkValues(l)...)
		return err
	})
}

// linkable returns nil if the account of a link can be created or recovered. It locks the user, so
// that the links of one user are counted one after the other.
func linkable(ctx context.Context, q querier, l storage.OneTimeLink) error {
	var id string
	if l.Kind != storage.LinkInvite {
		return one(ctx, q, []any{&id}, "SELECT id FROM users WHERE id = $1 AND NOT disabled FOR UPDATE", l.UserID)
	}
	var taken bool
	err := one(ctx, q, []any{&taken}, "SELECT EXISTS (SELECT 1 FROM users WHERE name_key = $1)",
		column.NameKey(l.Name))
	if err == nil && taken {
		err = storage.ErrExists
	}
	return err
}

// AcceptInvitation implements storage.OneTimeLinks.
func (s *Store) AcceptInvitation(
	ctx context.Context, a storage.Acceptance,
) (u storage.User, joined []string, err error) {
	err = s.tx(ctx, "AcceptInvitation", func(ctx context.Context, q querier) error {
		u, joined = a.User, nil
		l, err := portable.OneLink(portableConn{ctx, q}, column.ReadLink+"hash = $1 FOR UPDATE", a.Hash[:])
		if err == nil {
			err = column.Invitable(l, a.Now)
		}
		if err == nil && l.Role == storage.Administrator {
			_, err = lockSetup(ctx, q) // like CreateUser
		}
		if err != nil {
			return err
		}
		u.Name, u.Mail, u.Role = l.Name, l.Mail, l.Role
		if _, err := q.Exec(ctx, "DELETE FROM one_time_links WHERE hash = $1", a.Hash[:]); err != nil {
			return err
		}
		if err := changed(storage.ErrExists)(putUser(ctx, q, u)); err != nil {
			return err
		}
		if err := addPasskey(ctx, q, a.Passkey); err != nil {
			return err
		}
		for _, group := range l.Groups {
			switch n, err := exec(ctx, q, column.AddMember, group, u.ID, column.Millis(a.Now)); {
			case err != nil:
				return err
			case n > 0:
				joined = append(joined, group)
			}
		}
		return nil
	})
	return u, joined, err
}

// RecoverAccount implements storage.OneTimeLinks.
func (s *Store) RecoverAccount(ctx context.Context, r storage.Recovery) (out storage.User, err error) {
	err = s.tx(ctx, "RecoverAccount", func(ctx context.Context, q querier) error {
		if _, err := q.Exec(ctx, lockPerson, r.Hash[:]); err != nil {
			return err
		}
		l, err := portable.OneLink(portableConn{ctx, q}, column.ReadLink+"hash = $1 FOR UPDATE", r.Hash[:])
		if err == nil {
			err = column.Usable(l, r.Browser, r.Now)
		}
		if err != nil {
			return err
		}
		var u column.UserRow
		err = one(ctx, q, u.Dest(), "UPDATE users SET password_hash = $1 WHERE id = $2 AND NOT disabled RETURNING "+
			column.UserColumns, r.PasswordHash, l.UserID)
		if errors.Is(err, pgx.ErrNoRows) {
			return storage.ErrRevoked
		}
		if err != nil {
			return err
		}
		out = u.User()
		_, err = q.Exec(ctx, "DELETE FROM one_time_links WHERE user_id = $1 AND (kind = $2 OR $3)", l.UserID,
			string(storage.LinkReset), l.Kind == storage.LinkRecover)
		if err != nil {
			return err
		}
		if err := addPasskey(ctx, q, r.Passkey); err != nil {
			return err
		}
		return cutOff(ctx, q, l.UserID, passwordCut(true), r.Now)
	})
	return out, err
}

// addPasskey adds a passkey, unless it is nil, to a user whose row the transaction has locked.
func addPasskey(ctx context.Context, q querier, w *storage.Way) error {
	if w == nil {
		return nil
	}
	return changed(storage.ErrFull)(exec(ctx, q, insertWay, wayValues(*w)...))
}
