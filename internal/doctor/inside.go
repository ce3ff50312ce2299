package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// files checks the permissions of secret files.
func (d *doctor) files() {
	if runtime.GOOS == "windows" {
		d.skip("files", "file modes mean nothing on this system")
		return
	}
	c, before := d.in.Config, len(d.findings)
	d.directory(c.DataDir)
	if c.Audit.Enabled {
		d.spool(filepath.Join(c.DataDir, "audit"))
	}
	secret := map[string]string{
		"the setup link": filepath.Join(c.DataDir, installation.SetupFile), "tls.key": c.TLS.Key,
	}
	if !c.Postgres() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			secret["the database"+suffix] = c.SQLitePath() + suffix
		}
	}
	if c.File != "" && c.HoldsSecrets() {
		secret["the configuration, which holds secrets,"] = c.File
	}
	maps.Copy(secret, c.SecretFiles())
	keys := d.in.KeyFiles()
	maps.DeleteFunc(secret, func(_, path string) bool { return slices.Contains(keys, path) })
	for _, path := range keys {
		d.keyFile(path)
	}
	for _, what := range slices.Sorted(maps.Keys(secret)) {
		if secret[what] != "" {
			d.private(what, secret[what])
		}
	}
	d.leftCopies()
	if len(d.findings) == before {
		d.ok("files", "files with secrets are readable only by their owner")
	}
}

func (d *doctor) directory(path string) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir() && d.access(path) != nil:
		d.fail("files",
			"give the user that runs the server access to it; if that is another one, run doctor as that user",
			"the data directory %s (%s) cannot be written by %s", path, info.Mode(), installation.CurrentUser())
	case errors.Is(err, fs.ErrNotExist):
		if above := existing(path); d.access(above) != nil {
			d.fail("files", "make it for the user that runs the server, or choose another with data_dir",
				"the data directory %s does not exist, and %s may not create it in %s", path, installation.CurrentUser(), above)
		}
	case err != nil:
		d.fail("files", "give the user that runs the server access to it",
			"the data directory cannot be looked at: %s", err)
	case !info.IsDir():
		d.fail("files", "choose another with data_dir", "the data directory %s is a file", path)
	case info.Mode().Perm()&0o022 != 0:
		d.fail("files", "chmod 0700 "+path, "others may write to the data directory %s (%s)", path, info.Mode().Perm())
	}
}

// spool checks the directory for queued audit entries, which may not exist yet.
func (d *doctor) spool(path string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || !info.IsDir() || d.access(path) != nil:
		d.warn("files",
			"give the user that runs the server access to it; if that is another one, run doctor as that user",
			"%s is no directory that %s can write to: entries of the audit log would wait in memory alone, and be lost "+
				"when the server is killed", path, installation.CurrentUser())
	case info.Mode().Perm()&0o077 != 0:
		d.warn("files", "chmod 0700 "+path, "others have access to what waits for the audit log in %s (%s)", path,
			info.Mode().Perm())
	}
}

// existing returns the first existing directory above a path.
func existing(path string) string {
	for path != filepath.Dir(path) {
		path = filepath.Dir(path)
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	return path
}

// keyFile checks a file of master keys, as the server does at start.
func (d *doctor) keyFile(path string) {
	switch e := d.in.Exposed(path); {
	case e.Wrong == "":
	case e.Tolerate:
		d.warn("files", e.Remedy, "the secret key may not be secret: %s: %s", path, e.Wrong)
	default:
		d.fail("files", e.Remedy, "the server does not start with the secret key %s: %s", path, e.Wrong)
	}
}

func (d *doctor) private(what, path string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		d.fail("files", "give the user that runs the server access to it", "%s cannot be looked at: %s", what, err)
	case info.Mode().Perm()&0o007 == 0:
	case installation.Sheltered(path):
		d.warn("files", "chmod 0600 "+path, "only its directory keeps others from %s: %s (%s)", what, path,
			info.Mode().Perm())
	case secrets.Mounted(path):
		d.warn("files", "set the mode of the mount to 0400 or 0440",
			"%s is readable to every user in the container: %s (%s)", what, path, info.Mode().Perm())
	default:
		d.fail("files", "chmod 0600 "+path, "%s is readable to every user of this machine: %s (%s)", what, path,
			info.Mode().Perm())
	}
}

// database checks the store and the keys without creating them.
func (d *doctor) database(ctx context.Context) {
	fresh := !d.in.Config.Postgres() && !d.in.HasDatabase()
	if _, err := os.Stat(d.in.Config.SQLitePath()); fresh && errors.Is(err, fs.ErrPermission) {
		return // files has reported it
	}
	if !d.masterKey(fresh) {
		return
	}
	if _, err := os.Stat(d.in.Config.SQLitePath()); fresh && err == nil {
		d.fail("database", "", "%s", d.in.DatabaseIsThere())
		return
	}
	if running, err := d.in.Servers(); fresh && err == nil && len(running) > 0 {
		d.fail("database", "do not stop it: docs/runbooks/database-lost.md says how to save the file first",
			"%s was deleted or moved away, and a server still has it open (process %s)",
			d.in.Config.SQLitePath(), strings.Join(running, ", "))
		return
	}
	if fresh {
		d.skip("database", "there is no database yet: the first start makes %s", d.in.Config.SQLitePath())
		return
	}
	store, err := d.in.OpenDatabase(ctx, false)
	if err != nil {
		d.fail("database", "", "%s", err)
		return
	}
	d.in.Store = store
	if err := store.Ready(ctx); errors.Is(err, migration.ErrNewer) {
		d.fail("database", "", "%s", label.FirstLine(err))
		return
	}
	pending := 0
	status, err := store.MigrationStatus(ctx)
	if err != nil {
		d.fail("database", "check database.url and what its user may do there",
			"the state of the schema cannot be read: %s", label.FirstLine(err))
		return
	}
	waits := ""
	for _, m := range status {
		switch {
		case !m.DueAt.IsZero():
			waits = fmt.Sprintf("; %d is put off until %s, for servers of an earlier version to be replaced",
				m.Version, label.Moment(m.DueAt))
		case m.AppliedAt.IsZero():
			pending++
		}
	}
	switch {
	case pending > 0 && d.in.Config.Database.Migrate == "auto":
		d.warn("database", "the next start applies them; to do it beforehand: mcp-authd migrate up",
			"%s pending", label.Count(pending, "migration is", "migrations are"))
	case pending > 0:
		d.fail("database", "mcp-authd migrate up", "%s pending, and database.migrate is off",
			label.Count(pending, "migration is", "migrations are"))
	default:
		if writable, intact := d.writable(ctx), d.intact(ctx); writable && intact {
			d.ok("database", "reachable, its schema is current (%d)%s", len(status), waits)
		}
		d.current = true
		d.clock()
		d.growth(ctx)
		d.alone()
		d.sameIssuer(ctx)
		d.signingKeys(ctx)
		d.ages(ctx)
		d.replicas(ctx)
		d.receivers(ctx)
		d.sinks(ctx)
		d.names(ctx)
	}
}

// writable checks whether the database accepts a write.
func (d *doctor) writable(ctx context.Context) bool {
	err := d.in.Store.Writable(ctx)
	if err != nil {
		d.fail("database",
			"make room on its disk, and see that the server's user may write there; with PostgreSQL, connect to the primary",
			"it can be read, and not written: %s", label.FirstLine(err))
	}
	return err == nil
}

// intact checks that a SQLite file is not damaged.
func (d *doctor) intact(ctx context.Context) bool {
	err := d.in.Intact(ctx)
	if err != nil {
		d.fail("database", "stop the server, keep a copy of the file, and restore a backup", "%s", label.FirstLine(err))
	}
	return err == nil
}

// clock compares this machine's clock with the database's, which servers use.
func (d *doctor) clock() {
	skew := d.in.Store.Skew()
	const advice = "keep both machines right by NTP (timedatectl, chronyc tracking)"
	switch differ := skew.Abs().Round(time.Millisecond); {
	case skew.Abs() > authserver.MaxSkew:
		d.fail("clock", advice,
			"the clock of this machine and that of the database differ by %s: no server starts here", differ)
	case skew.Abs() > authserver.TellSkew:
		d.warn("clock", advice,
			"the clock of this machine and that of the database differ by %s; servers go by the database's", differ)
	case d.in.Config.Postgres():
		d.ok("clock", "the clock of this machine is that of the database")
	}
}

// alone reports several servers on one SQLite file.
func (d *doctor) alone() {
	if d.in.Config.Postgres() {
		return
	}
	if network := d.in.NetworkFileSystem(); network != "" {
		d.warn("database", "move it to a disk of this machine, or use PostgreSQL",
			"%s is on %s, where SQLite can be damaged", d.in.Config.SQLitePath(), network)
	}
	servers, err := d.in.Servers()
	switch {
	case err != nil:
		d.skip("database", "could not find out which servers use it: %s", err)
	case len(servers) > 1:
		d.fail("database", "SQLite is for one replica: stop all but one of them, or use PostgreSQL",
			"%s %s (processes %s)", label.Count(len(servers), "server uses", "servers use"), d.in.Config.SQLitePath(),
			strings.Join(servers, ", "))
	}
}

// sameIssuer reports an issuer that has changed since the last start.
func (d *doctor) sameIssuer(ctx context.Context) {
	now := d.in.Config.Issuer
	before, err := d.in.Store.Remember(ctx, "issuer", nil)
	if err != nil || len(before) == 0 || string(before) == now {
		return
	}
	if d.in.Config.IsDefault("issuer") {
		d.lastIssuer(string(before))
	} else {
		d.warn("issuer", "put the earlier one back, or tell the resource servers; clients register and sign in again",
			"it was %s when a server last started, and is %s in the configuration", before, now)
	}
}

// lastIssuer continues with the issuer of the last start. The directories of demo, protect and
// embedding programs have no configuration that names one.
func (d *doctor) lastIssuer(issuer string) {
	d.in.Config.Issuer, d.remembered = issuer, true
	d.add("issuer", "skipped", "if the server has one, name it with --config",
		"no configuration names the issuer; this is about the one of the last start, %s", issuer)
}

// masterKey reports whether there is a master key.
func (d *doctor) masterKey(fresh bool) bool {
	if !d.in.HasKey() && !d.in.Config.Postgres() {
		path := d.in.KeyPath()
		if fresh {
			d.skip("keys", "there is no secret key yet: the first start makes %s", path)
			return true
		}
		d.fail("keys",
			"put it back from where it is kept, or set secret_key: the sealed contents of the database cannot be opened without it",
			"there is a database, and no secret key: %s is missing", path)
		return false
	}
	if err := d.in.LoadKeys(); err != nil {
		d.fail("keys", "", "%s", err)
		return false
	}
	return true
}

// signingKeys checks whether the existing keys can be used. It calls the key manager only if there
// are keys, because a manager would create the first one.
func (d *doctor) signingKeys(ctx context.Context) {
	stored, err := d.in.Store.Keys(ctx, d.now())
	if err != nil {
		d.fail("keys", "", "the signing keys cannot be read: %s", label.FirstLine(err))
		return
	}
	active := false
	for _, k := range stored {
		d.kids = append(d.kids, k.ID)
		if k.State == storage.KeyActive && k.Algorithm == d.in.Config.Tokens.Algorithm {
			active = true
			d.keyAge(k)
		}
	}
	if !active {
		d.skip("keys", "there is no %s signing key yet: the next start makes one", d.in.Config.Tokens.Algorithm)
		return
	}
	if err := d.in.Belongs(ctx, d.in.Store); err != nil {
		d.fail("keys", "", "%s", err)
		return
	}
	if _, err := d.in.Parts().KeyManager(ctx); err != nil {
		d.fail("keys", "keep earlier master keys in secret_key_old until after: mcp-authd secret rotate",
			"the signing keys cannot be used: %s", label.FirstLine(err))
		return
	}
	d.ok("keys", "the secret key opens the database, %s published",
		label.Count(len(stored), "signing key is", "signing keys are"))
}

// leftCopies looks for unneeded copies of the database.
func (d *doctor) leftCopies() {
	for _, path := range installation.LeftCopies(d.now()) {
		d.warn("files", "the next restore removes it, with --check, too", "a restore that was killed has left a copy in %s",
			label.Printable(path))
	}
}
