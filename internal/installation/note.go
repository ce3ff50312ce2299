package installation

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The facts about its copies that the database stores.
const (
	lastBackup = "backup"   // when it was last copied
	origin     = "restored" // the time of the copy that it was restored from, if any
)

// noteTime is how long a command that made or restored a backup waits for the database to record
// it.
const noteTime = 30 * time.Second

// noteBackup records that the database was copied.
func noteBackup(ctx context.Context, store storage.Store, at time.Time) error {
	_, err := store.Remember(ctx, lastBackup, []byte(at.UTC().Format(time.RFC3339)))
	if err == nil {
		_, err = store.Remember(ctx, origin, []byte{}) // valid until the next backup
	}
	return err
}

// noteOrigin records that the database was restored from a copy, which counts as its last backup.
func noteOrigin(ctx context.Context, store storage.Store, at time.Time) error {
	err := noteBackup(ctx, store, at)
	if err == nil {
		_, err = store.Remember(ctx, origin, []byte(at.UTC().Format(time.RFC3339)))
	}
	return err
}

// noteRestore is noteOrigin for a backup of a database that servers used. It removes them from the
// list of replicas, because they do not run on its copy. An older schema may not have that list.
func (in *Installation) noteRestore(ctx context.Context, store storage.Store, at time.Time) error {
	err := noteOrigin(ctx, store, at)
	if err != nil || store.Ready(ctx) != nil {
		return err
	}
	seen, _, err := store.Replicas(ctx, in.now())
	for _, r := range seen {
		err = errors.Join(err, store.ForgetReplica(ctx, r.ID))
	}
	return err
}

// noteCopy records a copy in the configured database. An error here does not fail the command,
// whose work is done, and a signal does not interrupt it.
func (in *Installation) noteCopy(ctx context.Context, note func(context.Context, storage.Store, time.Time) error,
	at time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	store, err := in.OpenDatabase(ctx, false)
	if err == nil {
		err = errors.Join(note(ctx, store, at), store.Close())
	}
	if err != nil {
		in.Log.Warn("doctor will not know of this backup", "error", err)
	}
}

// Copies tells when the database was last copied, and of which copy it was made.
type Copies struct {
	At       time.Time // the last backup, or the copy that the database was restored from; zero for none
	Restored bool      // the database was restored, and not copied since
}

// Copies reads when the database, which must be open, was last copied.
func (in *Installation) Copies(ctx context.Context) (c Copies, err error) {
	text, err := in.Store.Remember(ctx, lastBackup, nil)
	from, fromErr := in.Store.Remember(ctx, origin, nil)
	if err := errors.Join(err, fromErr); err != nil {
		return c, err
	}
	at, parseErr := time.Parse(time.RFC3339, string(text))
	if len(text) == 0 || parseErr != nil {
		return c, nil
	}
	return Copies{At: at, Restored: bytes.Equal(text, from)}, nil
}
