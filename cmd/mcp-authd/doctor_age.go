package main

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// backupAge is how old the last backup may be.
const backupAge = 7 * 24 * time.Hour

// lastBackup is the name of the fact when the database was last copied.
const lastBackup = "backup"

// noteBackup remembers that the database was copied.
func noteBackup(ctx context.Context, store storage.Housekeeping, at time.Time) error {
	_, err := store.Remember(ctx, lastBackup, []byte(at.UTC().Format(time.RFC3339)))
	return err
}

// ages looks for what is older than it should be (DL-02).
func (d *doctor) ages(ctx context.Context) {
	text, err := d.app.store.Remember(ctx, lastBackup, nil)
	at, parseErr := time.Parse(time.RFC3339, string(text))
	const advice = "mcp-authd backup FILE, and then: mcp-authd restore --check FILE"
	switch age := d.now().Sub(at); {
	case err != nil:
		d.fail("backup", "", "when the last backup was made cannot be read: %s", oneLine(err))
	case len(text) == 0 || parseErr != nil:
		d.skip("backup", "no backup was made by backup or export; if they are made by other means, try them as well")
	case age > backupAge:
		d.warn("backup", advice, "the last backup is %d days old", int(age.Hours()/24))
	default:
		d.ok("backup", "the last one was made on %s", moment(at))
	}
}

// keyAge tells of a signing key that should have been replaced by now.
func (d *doctor) keyAge(k storage.SigningKey) {
	every := time.Duration(d.app.config.Keys.RotateEvery)
	age := d.now().Sub(k.ActivatedAt)
	if every <= 0 || k.ActivatedAt.IsZero() || age < every+every/10 {
		return
	}
	d.warn("keys", "a server replaces it within an hour of its start; now: mcp-authd keys rotate --now",
		"signing key %s has signed for %d days, and keys.rotate_every is %d days: no server has replaced it", k.ID,
		int(age.Hours()/24), int(every.Hours()/24))
}
