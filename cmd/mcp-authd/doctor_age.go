package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// backupAge is the maximum age of the last backup.
const backupAge = 7 * 24 * time.Hour

// noteTime is how long a command that made or restored a backup waits for the database to record
// it.
const noteTime = 30 * time.Second

// The facts about its copies that the database stores.
const (
	lastBackup = "backup"   // when it was last copied
	origin     = "restored" // the time of the copy that it was restored from, if any
)

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
func noteRestore(ctx context.Context, store storage.Store, at time.Time) error {
	err := noteOrigin(ctx, store, at)
	if err != nil || store.Ready(ctx) != nil {
		return err
	}
	seen, _, err := store.Replicas(ctx, time.Now())
	for _, r := range seen {
		err = errors.Join(err, store.ForgetReplica(ctx, r.ID))
	}
	return err
}

// noteCopy records a copy in the configured database. An error here does not fail the command,
// whose work is done, and a signal does not interrupt it.
func (a *app) noteCopy(ctx context.Context, note func(context.Context, storage.Store, time.Time) error,
	at time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	store, err := a.openDatabase(ctx, false)
	if err == nil {
		err = errors.Join(note(ctx, store, at), store.Close())
	}
	if err != nil {
		a.log.Warn("doctor will not know of this backup", "error", err)
	}
}

// ages checks the age of backups and keys (DL-02).
func (d *doctor) ages(ctx context.Context) {
	text, err := d.app.store.Remember(ctx, lastBackup, nil)
	from, fromErr := d.app.store.Remember(ctx, origin, nil)
	at, parseErr := time.Parse(time.RFC3339, string(text))
	err = errors.Join(err, fromErr)
	restored := len(text) > 0 && bytes.Equal(text, from) // no backup since
	const advice = "mcp-authd backup FILE, and then: mcp-authd restore --check FILE"
	switch age := d.now().Sub(at); {
	case err != nil:
		d.fail("backup", "", "when the last backup was made cannot be read: %s", oneLine(err))
	case len(text) == 0 || parseErr != nil:
		d.skip("backup", "no backup was made by backup or export; if they are made by other means, try them as well")
	case restored && age > backupAge:
		d.warn("backup", advice, "this database was made of the backup of %s, %s old, and none was made since",
			moment(at), days(age))
	case restored:
		d.ok("backup", "this database was made of the one of %s, and none was made since", moment(at))
	case age > backupAge:
		d.warn("backup", advice, "the last backup is %s old", days(age))
	default:
		d.ok("backup", "the last one was made on %s", moment(at))
	}
}

// keyAge reports a signing key that should have been replaced.
func (d *doctor) keyAge(k storage.SigningKey) {
	every := time.Duration(d.app.config.Keys.RotateEvery)
	age := d.now().Sub(k.ActivatedAt)
	if every <= 0 || k.ActivatedAt.IsZero() || age < every+every/10 {
		return
	}
	d.warn("keys", "a server replaces it within an hour of its start; now: mcp-authd keys rotate --now",
		"signing key %s has signed for %s, and keys.rotate_every is %s: no server has replaced it", k.ID,
		days(age), days(every))
}

// days returns a duration in whole days.
func days(d time.Duration) string { return label.Count(int(d.Hours()/24), "day", "days") }
