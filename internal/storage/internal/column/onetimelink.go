package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// LinkColumns are the columns of a one-time link, in the order of LinkRow.
const LinkColumns = "hash, stop_hash, kind, user_id, name, admin, mail, browser, not_before, expires_at, created_at, role, " +
	"member_of"

// LinkRow reads LinkColumns.
type LinkRow struct {
	l                           storage.OneTimeLink
	hash, stop, browser         []byte
	admin                       bool
	kind, groups                string
	notBefore, expires, created int64
}

func (r *LinkRow) Dest() []any {
	return []any{
		&r.hash, &r.stop, &r.kind, &r.l.UserID, &r.l.Name, &r.admin, &r.l.Mail, &r.browser,
		&r.notBefore, &r.expires, &r.created, &r.l.Role, &r.groups,
	}
}

func (r *LinkRow) Link() (storage.OneTimeLink, error) {
	l := r.l
	l.Kind, l.Role = storage.LinkKind(r.kind), readRole(r.admin, l.Role)
	l.NotBefore, l.ExpiresAt, l.CreatedAt = Time(r.notBefore), Time(r.expires), Time(r.created)
	var err error
	if l.Groups, err = ParseList[string](r.groups); err != nil {
		return l, err
	}
	for _, h := range []struct {
		b  []byte
		to *storage.Hash
	}{{r.hash, &l.Hash}, {r.stop, &l.StopHash}, {r.browser, &l.Browser}} {
		if h.b == nil {
			continue
		}
		if *h.to, err = Hash(h.b); err != nil {
			return l, err
		}
	}
	return l, nil
}

// LinkValues returns the values of LinkColumns, and then the key of the name.
func LinkValues(l storage.OneTimeLink) []any {
	admin, role := RoleValues(l.Role)
	return []any{
		l.Hash[:], optHash(l.StopHash), string(l.Kind), l.UserID, l.Name, admin, l.Mail, optHash(l.Browser),
		Millis(l.NotBefore), Millis(l.ExpiresAt), Millis(l.CreatedAt), role, List(l.Groups),
		NameKey(l.Name),
	}
}

func optHash(h storage.Hash) any {
	if h == (storage.Hash{}) {
		return nil
	}
	return h[:]
}

// Usable returns nil if a recovery or reset link can be used now in a browser.
func Usable(l storage.OneTimeLink, browser storage.Hash, now time.Time) error {
	switch {
	case l.Kind == storage.LinkInvite:
		return storage.ErrNotFound
	case !now.Before(l.ExpiresAt):
		return storage.ErrExpired
	case l.Browser != (storage.Hash{}) && l.Browser != browser:
		return storage.ErrMismatch
	case now.Before(l.NotBefore):
		return storage.ErrEarly
	}
	return nil
}

// Invitable returns nil if an invitation can be accepted now.
func Invitable(l storage.OneTimeLink, now time.Time) error {
	switch {
	case l.Kind != storage.LinkInvite:
		return storage.ErrNotFound
	case !now.Before(l.ExpiresAt):
		return storage.ErrExpired
	}
	return nil
}
