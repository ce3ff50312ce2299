package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

const (
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

// AcceptInvitation implements storage.OneTimeLinks.
func (s *Store) AcceptInvitation(
	ctx context.Context, a storage.Acceptance,
) (u storage.User, joined []string, err error) {
	err = s.write(ctx, "AcceptInvitation", func(c *conn) error {
		u, joined = a.User, nil
		l, err := portable.OneLink(portableConn{c}, column.ReadLink+"hash = ?", a.Hash[:])
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
		l, err := portable.OneLink(portableConn{c}, column.ReadLink+"hash = ?", r.Hash[:])
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
