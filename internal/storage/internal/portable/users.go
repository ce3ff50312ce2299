package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// users implements verbs of storage.Users and storage.Accounts.
type users struct{ db Engine }

// UserByName implements storage.Users.
func (s users) UserByName(ctx context.Context, name string) (storage.User, error) {
	return s.user(ctx, "UserByName", "name_key = $1", column.NameKey(name))
}

// User implements storage.Users.
func (s users) User(ctx context.Context, id string) (storage.User, error) {
	return s.user(ctx, "User", "id = $1", id)
}

func (s users) user(ctx context.Context, verb, where, arg string) (out storage.User, err error) {
	err = s.db.Read(ctx, verb, func(c Conn) error {
		var r column.UserRow
		err := c.One(r.Dest(), "SELECT "+column.UserColumns+" FROM users WHERE "+where, arg)
		if err == nil {
			out = r.User()
		}
		return err
	})
	return out, err
}

// ListUsers implements storage.Users.
func (s users) ListUsers(ctx context.Context, after string, limit int) (out []storage.User, err error) {
	err = s.db.Read(ctx, "ListUsers", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (storage.User, error) {
			var r column.UserRow
			err := row.Scan(r.Dest()...)
			return r.User(), err
		}, "SELECT "+column.UserColumns+" FROM users WHERE name_key > $1 ORDER BY name_key LIMIT $2",
			column.NameKey(after), max(limit, 0))
		return err
	})
	return out, err
}

// HasPasswords implements storage.Users.
func (s users) HasPasswords(ctx context.Context) (has bool, err error) {
	err = s.db.Read(ctx, "HasPasswords", func(c Conn) error {
		return c.One([]any{&has}, "SELECT EXISTS (SELECT 1 FROM users WHERE password_hash <> '')")
	})
	return has, err
}

// SetLocale implements storage.Locales.
func (s users) SetLocale(ctx context.Context, userID, tag string) error {
	return s.db.Write(ctx, "SetLocale", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec("UPDATE users SET locale = $1 WHERE id = $2", tag, userID))
	})
}

// TouchLogin implements storage.Accounts.
func (s users) TouchLogin(ctx context.Context, userID string, now time.Time) error {
	return s.db.Write(ctx, "TouchLogin", func(c Conn) error {
		return changed(storage.ErrNotFound)(
			c.Exec("UPDATE users SET last_login_at = $1 WHERE id = $2", column.Millis(now), userID),
		)
	})
}
