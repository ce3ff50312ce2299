package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// Migrating is a store with migrations, as both backends are.
type Migrating interface {
	storage.Store
	Migrate(ctx context.Context) error
	MigrateNow(ctx context.Context) error
	MigrationStatus(ctx context.Context) ([]migration.Status, error)
}

// mayMake returns an error if a new installation might replace one that is elsewhere or was lost.
func (in *Installation) mayMake() error {
	if in.Config.Postgres() {
		return nil
	}
	_, noDirectory := os.Stat(in.Config.DataDir)
	_, noKey := os.Stat(in.KeyPath())
	if noKey == nil || errors.Is(noDirectory, fs.ErrNotExist) && in.Config.Origin("data_dir") == "--data" {
		return in.DatabaseIsThere()
	}
	return nil
}

func (in *Installation) openOrMakeStore(ctx context.Context) error {
	migrate := in.Config.Database.Migrate == "auto"
	if err := in.DatabaseIsThere(); err != nil && !migrate {
		return fmt.Errorf("database.migrate is off, and %w; make it with: mcp-authd migrate up", err)
	}
	return in.makeStore(ctx, migrate)
}

// OpenOrCreate opens the installation, or creates a new one, so that accounts can be added before the
// first start. A directory named by --data must exist, and so must the database of an existing key.
func (in *Installation) OpenOrCreate(ctx context.Context) error {
	if err := in.mayMake(); err != nil {
		return err
	}
	in.warnOfKeys()
	return in.openOrMakeStore(ctx)
}

// OpenToServe is OpenOrCreate for the server. It creates the data directory, and refuses an exposed
// key.
func (in *Installation) OpenToServe(ctx context.Context) error {
	if err := in.GuardKeys(); err != nil {
		return err
	}
	if err := in.portsAreFree(ctx); err != nil {
		return err
	}
	return in.Await(ctx, in.openOrMakeStore)
}

// OpenWithNewKey opens the existing installation. It also works while the successor of
// secret_key_old does not exist yet.
func (in *Installation) OpenWithNewKey(ctx context.Context) error {
	if err := in.DatabaseIsThere(); err != nil {
		return err
	}
	return in.makeStore(ctx, false)
}

// Create opens master keys and store, and creates them on a first start.
func (in *Installation) Create(ctx context.Context) error { return in.makeStore(ctx, true) }

// OpenUnmigrated opens the existing database without migrating it.
func (in *Installation) OpenUnmigrated(ctx context.Context) (Migrating, error) {
	if err := in.DatabaseIsThere(); err != nil {
		return nil, err
	}
	return in.unmigrated(ctx)
}

// CreateUnmigrated opens the database without migrating it. It creates a missing SQLite file with its
// secret key. Without the key, the new database would look like one that has lost it.
func (in *Installation) CreateUnmigrated(ctx context.Context) (Migrating, error) {
	if !in.Config.Postgres() {
		if err := in.loadKeys(in.makeKey); err != nil {
			return nil, err
		}
	}
	return in.unmigrated(ctx)
}

func (in *Installation) unmigrated(ctx context.Context) (Migrating, error) {
	m, err := in.OpenDatabase(ctx, false)
	if err != nil {
		return nil, err
	}
	in.Store = m
	return m, nil
}

// Open opens existing master keys and store, and creates nothing. A command in the wrong
// directory reports that, rather than an empty installation.
func (in *Installation) Open(ctx context.Context) error {
	in.warnOfKeys()
	if err := in.loadKeys(in.keptKey); err != nil {
		return err
	}
	if err := in.DatabaseIsThere(); err != nil {
		return err
	}
	if err := in.use(ctx, false, in.Belongs); err != nil {
		return err
	}
	return in.lastIssuer(ctx)
}

// lastIssuer makes a command use the issuer of the last start unless one is configured, because
// printed links must lead to that server. The directories of protect, demo and embedding programs
// have no configuration.
func (in *Installation) lastIssuer(ctx context.Context) error {
	if !in.Config.IsDefault("issuer") {
		return nil
	}
	before, err := in.Store.Remember(ctx, "issuer", nil)
	if err == nil && len(before) > 0 {
		in.Config.Issuer = string(before)
	}
	return err
}

// makeStore opens master keys and store, and creates them on a first start.
func (in *Installation) makeStore(ctx context.Context, migrate bool) error {
	if err := in.loadKeys(in.makeKey); err != nil {
		return err
	}
	return in.use(ctx, migrate, in.claim)
}

// use opens the store and keeps it, if its schema is current and it belongs to our key.
func (in *Installation) use(ctx context.Context, migrate bool, fits func(context.Context, storage.Store) error) error {
	store, err := in.OpenDatabase(ctx, migrate)
	if err != nil {
		return err
	}
	if !migrate {
		err = store.Ready(ctx)
	}
	if err == nil {
		err = fits(ctx, store)
	}
	if err != nil {
		store.Close()
		return in.ExplainStore(err)
	}
	in.Store = store
	return nil
}

// OpenDatabase opens the database. It creates a missing SQLite file.
func (in *Installation) OpenDatabase(ctx context.Context, migrate bool) (Migrating, error) {
	var store Migrating
	var err error
	if in.Config.Postgres() {
		store, err = postgres.Open(ctx, string(in.Config.Database.URL),
			postgres.Options{SkipMigrate: !migrate, Logger: in.Log})
	} else {
		if err := os.MkdirAll(filepath.Dir(in.Config.SQLitePath()), 0o700); err != nil {
			return nil, in.explainDirectory(fmt.Errorf("the data directory cannot be made: %w", err))
		}
		store, err = sqlite.Open(ctx, in.Config.SQLitePath(), sqlite.Options{SkipMigrate: !migrate, Logger: in.Log})
	}
	if err != nil {
		return nil, in.ExplainStore(err)
	}
	return store, nil
}

// DatabaseIsThere returns an error if the SQLite database is missing or empty.
func (in *Installation) DatabaseIsThere() error {
	if in.Config.Postgres() || in.HasDatabase() {
		return nil
	}
	path := in.Config.SQLitePath()
	switch _, err := os.Stat(path); {
	case err == nil:
		return fmt.Errorf(
			"the database %s is empty (0 bytes): restore its backup, or start over with: mcp-authd serve", path,
		)
	case errors.Is(err, fs.ErrPermission):
		return in.explainDirectory(fmt.Errorf("the database cannot be looked at: %w", err))
	}
	return in.nothingHere()
}

// HasDatabase reports whether a SQLite database exists and is not empty.
func (in *Installation) HasDatabase() bool { return secrets.HasContent(in.Config.SQLitePath()) }

func (in *Installation) nothingHere() error {
	return fmt.Errorf(
		"there is no installation: %s does not exist (configuration: %s; data_dir: %s); name one with --data or --config, "+
			"or make a new one with: mcp-authd serve, or mcp-authd migrate up", in.Config.SQLitePath(), in.Source(),
		in.Config.Origin("data_dir"))
}

// claim assigns a new database to our master key, or checks that it belongs to it.
func (in *Installation) claim(ctx context.Context, store storage.Store) error {
	return explainKey(keys.Claim(ctx, store, in.Keys))
}

// Belongs refuses a database that belongs to another master key.
func (in *Installation) Belongs(ctx context.Context, store storage.Store) error {
	return explainKey(keys.Belongs(ctx, store, in.Keys))
}

func explainKey(err error) error {
	if errors.Is(err, keys.ErrOtherKey) {
		return fmt.Errorf("%w; set secret_key to that one, or use another database "+
			"(to change it, keep the old one in secret_key_old until after: mcp-authd secret rotate)", err)
	}
	return err
}

// KeyFile is the name of the master key in the data directory.
const KeyFile = "secret.key"

// LoadKeys reads the master keys that exist.
func (in *Installation) LoadKeys() error { return in.loadKeys(in.keptKey) }

// loadKeys finds the master keys: from the configuration, from systemd, or, with SQLite, in the
// data directory.
func (in *Installation) loadKeys(kept func() ([]byte, error)) error {
	in.Keys = nil
	primary := string(in.Config.SecretKey)
	if file := in.credential(); primary == "" && file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("the credential secret_key cannot be read: %w", err)
		}
		primary = strings.TrimSpace(string(b))
		if err := config.CheckSecretKey(primary); err != nil {
			return fmt.Errorf("the credential secret_key: %w", err)
		}
	}
	switch {
	case primary != "":
		if err := in.addKey("secret_key", primary); err != nil {
			return err
		}
	case in.Config.Postgres():
		return errors.New(
			"no secret key: with PostgreSQL set secret_key (or MCP_AUTHD_SECRET_KEY_FILE) to the same value on every replica; make one with: openssl rand -base64 32",
		)
	default:
		key, err := kept()
		if err != nil {
			return err
		}
		in.Keys = append(in.Keys, key)
	}
	for i, old := range in.Config.SecretKeyOld {
		if err := in.addKey(fmt.Sprintf("secret_key_old[%d]", i), string(old)); err != nil {
			return err
		}
	}
	return nil
}

func (in *Installation) addKey(name, text string) error {
	k, err := secrets.ParseKey(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	in.Keys = append(in.Keys, k)
	return nil
}

// KeyPath returns the path of the master key in the data directory.
func (in *Installation) KeyPath() string { return filepath.Join(in.Config.DataDir, KeyFile) }

// keptKey reads the key in the data directory.
func (in *Installation) keptKey() ([]byte, error) {
	key, err := secrets.ReadKey(in.KeyPath())
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return key, in.explainDirectory(err)
	case in.HasDatabase():
		return nil, in.missingKey()
	}
	return nil, in.DatabaseIsThere()
}

func (in *Installation) missingKey() error {
	return fmt.Errorf(
		"%[1]s is missing: put it back (%[2]s), from where it is kept with the backups, or set secret_key; "+
			"the sealed contents of %[3]s cannot be opened without it", KeyFile, in.KeyPath(), in.Config.SQLitePath())
}

// makeKey reads the key in the data directory. It creates one for a new database, or as the
// successor of secret_key_old.
func (in *Installation) makeKey() ([]byte, error) {
	database := in.Config.SQLitePath()
	if len(in.Config.SecretKeyOld) > 0 {
		database = "" // the database belongs to the old key
	}
	_, missing := os.Stat(in.KeyPath())
	if !in.HasDatabase() && missing == nil {
		in.Log.Warn("there is a secret key, and its database is empty or gone: a new one begins; to go on with the earlier one, "+
			"stop this server and restore the backup", "database", in.Config.SQLitePath(), "secret_key", in.KeyPath())
	}
	key, err := secrets.KeptKey(in.KeyPath(), database)
	if errors.Is(err, secrets.ErrMissing) {
		return nil, in.missingKey()
	}
	return key, in.explainDirectory(err)
}

// ExplainStore adds advice to the error of an unusable store.
func (in *Installation) ExplainStore(err error) error {
	where := "SQLite database " + in.Config.SQLitePath()
	if in.Config.Postgres() {
		where = "PostgreSQL"
	}
	flat := strings.Join(strings.Fields(err.Error()), " ")
	switch {
	case errors.Is(err, keys.ErrOtherKey):
		return err
	case errors.Is(err, storage.ErrSchema):
		return fmt.Errorf("%s: %s", where, label.FirstLine(err))
	case errors.Is(err, sqlite.ErrDamaged):
		return fmt.Errorf("%s cannot be used: %s; stop the server, keep a copy of the file, and restore a backup",
			where, flat)
	case errors.Is(err, sqlite.ErrLocked):
		return fmt.Errorf(
			"%s cannot be used: %s; end that process, such as a backup program or an open transaction of sqlite3, and try again",
			where, flat,
		)
	case !in.Config.Postgres():
		if advice := in.directoryAdvice(err); advice != "" {
			flat += "; " + advice
		}
		return fmt.Errorf("%s cannot be used: %s", where, flat)
	}
	advice := "check database.url and that the server is running"
	if postgres.Unauthorized(err) {
		advice = "check the user and the password in database.url, and that pg_hba.conf of the server lets them in"
	} else if grant := postgres.Denied(string(in.Config.Database.URL), err); grant != "" {
		advice = "the server has let this user in, who lacks a right: as the owner of the database run " + grant
	}
	return explained{fmt.Errorf("%s cannot be opened: %s; %s", where, flat, advice), err}
}

// explained is an error with a text for administrators and a cause for the program.
type explained struct {
	error
	Cause error
}

func (e explained) Unwrap() error { return e.Cause }
