package doctor

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// backupAge is the maximum age of the last backup.
const backupAge = 7 * 24 * time.Hour

// ages checks the age of backups and keys (DL-02).
func (d *doctor) ages(ctx context.Context) {
	last, err := d.in.Copies(ctx)
	const advice = "mcp-authd backup FILE, and then: mcp-authd restore --check FILE"
	switch age := d.now().Sub(last.At); {
	case err != nil:
		d.fail("backup", "", "when the last backup was made cannot be read: %s", label.FirstLine(err))
	case last.At.IsZero():
		d.skip("backup", "no backup was made by backup or export; if they are made by other means, try them as well")
	case last.Restored && age > backupAge:
		d.warn("backup", advice, "this database was made of the backup of %s, %s old, and none was made since",
			label.Moment(last.At), days(age))
	case last.Restored:
		d.ok("backup", "this database was made of the one of %s, and none was made since", label.Moment(last.At))
	case age > backupAge:
		d.warn("backup", advice, "the last backup is %s old", days(age))
	default:
		d.ok("backup", "the last one was made on %s", label.Moment(last.At))
	}
}

// keyAge reports a signing key that should have been replaced.
func (d *doctor) keyAge(k storage.SigningKey) {
	every := time.Duration(d.in.Config.Keys.RotateEvery)
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
