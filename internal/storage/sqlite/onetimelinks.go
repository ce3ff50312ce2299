package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	readLink   = "SELECT " + column.LinkColumns + " FROM one_time_links WHERE "
	insertLink = "INSERT INTO one_time_links (" + column.LinkColumns + ", name_key) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
	sameLinks  = "user_id = ? AND name_key = ? AND kind = ?"
)

// PutLink implements storage.OneTimeLinks.
func (s *Store) PutLink(ctx context.Context, l storage.OneTimeLink, now time.Time) error {
	return s.write(ctx, "PutLink", func(c *conn) error {
		if err := linkable(c, l); err != nil {
			return err
		}
		same := []any{l.UserID, column.NameKey(l.Name), string(l.Kind)}
		if l.Kind == storage.LinkReset {
			var n int
			err := c.one([]any{&n}, "SELECT count(*) FROM one_time_links WHERE "+sameLinks+" AND expires_at > ?",
				append(same, column.Millis(now))...)
			if err == nil && n >= storage.MaxResets {
				err = storage.ErrFull
			}
			if err != nil {
				return err
			}
		} else if _, err := c.exec("DELETE FROM one_time_links WHERE "+sameLinks, same...); err != nil {
			return err
		}
		_, err := c.exec(insertLink, column.LinkValues(l)...)
		return err
	})
}

// linkable returns nil if the account of a link can be created or recovered.
func linkable(c *conn, l storage.OneTimeLink) error {
	var taken, live bool
	err := c.one([]any{&taken, &live}, `SELECT EXISTS (SELECT 1 FROM users WHERE name_key = ?),
		EXISTS (SELECT 1 FROM users WHERE id = ? AND NOT disabled)`, column.NameKey(l.Name), l.UserID)
	switch {
	case err != nil:
		return err
	case l.Kind == storage.LinkInvite && taken:
		return storage.ErrExists
	case l.Kind != storage.LinkInvite && !live:
		return storage.ErrNotFound
	}
	return nil
}

func oneLink(c *conn, query string, args ...any) (storage.OneTimeLink, error) {
	var r column.LinkRow
	if err := c.one(r.Dest(), query, args...); err != nil {
		return storage.OneTimeLink{}, err
	}
	return r.Link()
}

// Link implements storage.OneTimeLinks.
func (s *Store) Link(ctx context.Context, h storage.Hash, now time.Time) (out storage.OneTimeLink, err error) {
	err = s.read(ctx, "Link", func(c *conn) (err error) {
		out, err = oneLink(c, readLink+"hash = ?1 OR stop_hash = ?1", h[:])
		if err == nil && !now.Before(out.ExpiresAt) {
			err = storage.ErrExpired
		}
		return err
	})
	return out, err
}

// AcceptInvitation implements storage.OneTimeLinks.
func (s *Store) AcceptInvitation(
	ctx context.Context, a storage.Acceptance,
) (u storage.User, joined []string, err error) {
	err = s.write(ctx, "AcceptInvitation", func(c *conn) error {
		u, joined = a.User, nil
		l, err := oneLink(c, readLink+"hash = ?", a.Hash[:])
		if err == nil {
			err = column.Invitable(l, a.Now)
		}
		if err != nil {
			return err
		}
		u.Name, u.Mail, u.Role = l.Name, l.Mail, l.Role
		return all(
			run(c, "DELETE FROM one_time_links WHERE hash = ?", a.Hash[:]),
			func() error { return changed(storage.ErrExists)(putUser(c, u)) },
			func() error { return addPasskey(c, a.Passkey) },
			func() error {
				for _, group := range l.Groups {
					switch n, err := c.exec(column.AddMember, group, u.ID, column.Millis(a.Now)); {
					case err != nil:
						return err
					case n > 0:
						joined = append(joined, group)
					}
				}
				return nil
			},
		)
	})
	return u, joined, err
}

// RecoverAccount implements storage.OneTimeLinks.
func (s *Store) RecoverAccount(ctx context.Context, r storage.Recovery) (out storage.User, err error) {
	err = s.write(ctx, "RecoverAccount", func(c *conn) error {
		l, err := oneLink(c, readLink+"hash = ?", r.Hash[:])
		if err == nil {
			err = column.Usable(l, r.Browser, r.Now)
		}
		if err != nil {
			return err
		}
		var u column.UserRow
		err = c.one(u.Dest(), "UPDATE users SET password_hash = ? WHERE id = ? AND NOT disabled RETURNING "+
			column.UserColumns, r.PasswordHash, l.UserID)
		if errors.Is(err, storage.ErrNotFound) {
			return storage.ErrRevoked
		}
		if err != nil {
			return err
		}
		out = u.User()
		return all(
			run(c, "DELETE FROM one_time_links WHERE user_id = ?1 AND (kind = ?2 OR ?3)", l.UserID,
				string(storage.LinkReset), l.Kind == storage.LinkRecover),
			func() error { return addPasskey(c, r.Passkey) },
			func() error { return cutOff(c, l.UserID, passwordCut(true), r.Now) },
		)
	})
	return out, err
}

// addPasskey adds a passkey, unless it is nil, to an account that exists and is enabled.
func addPasskey(c *conn, w *storage.Way) error {
	if w == nil {
		return nil
	}
	return changed(storage.ErrFull)(c.exec(insertWay, wayValues(*w)...))
}

// StopLink implements storage.LinkStops.
func (s *Store) StopLink(ctx context.Context, stop storage.Hash, now time.Time) (out storage.OneTimeLink, err error) {
	err = s.write(ctx, "StopLink", func(c *conn) (err error) {
		out, err = oneLink(c, "DELETE FROM one_time_links WHERE stop_hash = ? AND expires_at > ? RETURNING "+
			column.LinkColumns, stop[:], column.Millis(now))
		return err
	})
	return out, err
}

// StopLinks implements storage.LinkStops.
func (s *Store) StopLinks(ctx context.Context, userID string, now time.Time) (n int, err error) {
	err = s.write(ctx, "StopLinks", func(c *conn) error {
		stopped, err := c.exec("DELETE FROM one_time_links WHERE user_id = ? AND user_id <> '' AND expires_at > ?",
			userID, column.Millis(now))
		n = int(stopped)
		return err
	})
	return n, err
}

// RecoveryLink implements storage.LinkStops.
func (s *Store) RecoveryLink(
	ctx context.Context, userID string, now time.Time,
) (out storage.OneTimeLink, err error) {
	err = s.read(ctx, "RecoveryLink", func(c *conn) (err error) {
		out, err = oneLink(c, readLink+"user_id = ? AND kind = ? AND expires_at > ? ORDER BY created_at DESC LIMIT 1",
			userID, string(storage.LinkRecover), column.Millis(now))
		return err
	})
	return out, err
}

// StopInvitation implements storage.LinkStops.
func (s *Store) StopInvitation(ctx context.Context, name string, now time.Time) error {
	return s.write(ctx, "StopInvitation", func(c *conn) error {
		return changed(storage.ErrNotFound)(c.exec("DELETE FROM one_time_links WHERE "+sameLinks+" AND expires_at > ?",
			"", column.NameKey(name), string(storage.LinkInvite), column.Millis(now)))
	})
}

// OpenLinks implements storage.LinkStops.
func (s *Store) OpenLinks(
	ctx context.Context, after storage.Hash, limit int, now time.Time,
) (out []storage.OneTimeLink, err error) {
	err = s.read(ctx, "OpenLinks", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.OneTimeLink, error) {
			var r column.LinkRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.OneTimeLink{}, err
			}
			return r.Link()
		}, readLink+"expires_at > ? AND hash > ? ORDER BY hash LIMIT ?", column.Millis(now), after[:], max(limit, 0))
		return err
	})
	return out, err
}
