package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putRemote  = "INSERT INTO remote_sign_ins (" + column.RemoteColumns + ") VALUES ($1,$2,$3,$4,$5,$6)"
	readRemote = "SELECT " + column.RemoteRead + " FROM remote_sign_ins WHERE expires_at > $2 AND "
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
