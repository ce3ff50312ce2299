package portable

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putRemote  = "INSERT INTO remote_sign_ins (" + column.RemoteColumns + ") VALUES ($1,$2,$3,$4,$5,$6)"
	readRemote = "SELECT " + column.RemoteRead + " FROM remote_sign_ins WHERE expires_at > $2 AND "

	// decideRemote decides a request once: one of N callers changes the row.
	decideRemote = `UPDATE remote_sign_ins SET decided_at = $1, session_hash = $3
WHERE secret_hash = $2 AND decided_at IS NULL AND expires_at > $1`
)

// remoteSignIns implements verbs of storage.RemoteSignIns.
type remoteSignIns struct{ db Engine }

// PutRemoteSignIn implements storage.RemoteSignIns.
func (s remoteSignIns) PutRemoteSignIn(ctx context.Context, r storage.RemoteSignIn) error {
	return s.db.Write(ctx, "PutRemoteSignIn", func(c Conn) error {
		_, err := c.Exec(putRemote, column.RemoteValues(r)...)
		return err
	})
}

// RemoteSignInByCode implements storage.RemoteSignIns.
func (s remoteSignIns) RemoteSignInByCode(
	ctx context.Context, code storage.Hash, now time.Time,
) (storage.RemoteSignIn, error) {
	return s.remoteSignIn(ctx, "RemoteSignInByCode", "code_hash = $1 AND decided_at IS NULL", code, now)
}

// RemoteSignIn implements storage.RemoteSignIns.
func (s remoteSignIns) RemoteSignIn(
	ctx context.Context, secret storage.Hash, now time.Time,
) (storage.RemoteSignIn, error) {
	return s.remoteSignIn(ctx, "RemoteSignIn", "secret_hash = $1", secret, now)
}

func (s remoteSignIns) remoteSignIn(
	ctx context.Context, verb, where string, h storage.Hash, now time.Time,
) (r storage.RemoteSignIn, err error) {
	err = s.db.Read(ctx, verb, func(c Conn) error {
		var row column.RemoteRow
		err := c.One(row.Dest(), readRemote+where, h[:], column.Millis(now))
		if err == nil {
			r, err = row.RemoteSignIn()
		}
		return err
	})
	return r, err
}

// DecideRemoteSignIn implements storage.RemoteSignIns.
func (s remoteSignIns) DecideRemoteSignIn(
	ctx context.Context, secret storage.Hash, approver *storage.Hash, now time.Time,
) error {
	return s.db.Transact(ctx, "DecideRemoteSignIn", func(c Conn) error {
		var by []byte
		if approver != nil {
			by = approver[:]
			if err := c.One([]any{new(int)}, column.ApproverLives, by, column.Millis(now)); err != nil {
				return err
			}
		}
		n, err := c.Exec(decideRemote, column.Millis(now), secret[:], by)
		if err == nil && n == 0 {
			return RemoteOver(c, "decided_at", secret, now)
		}
		return err
	})
}

// RemoteOver returns why a request was not decided or collected: the column set was already set, or
// the request has expired. storage.ErrNotFound means neither.
func RemoteOver(c Conn, set string, secret storage.Hash, now time.Time) error {
	var done, live bool
	err := c.One([]any{&done, &live},
		"SELECT "+set+" IS NOT NULL, expires_at > CAST($2 AS bigint) FROM remote_sign_ins WHERE secret_hash = $1",
		secret[:], column.Millis(now))
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && !done && !live:
		return storage.ErrExpired
	case err != nil:
		return err
	case done:
		return storage.ErrSpent
	}
	return storage.ErrNotFound
}
