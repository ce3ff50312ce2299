package main

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
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// migrating is a store with migrations, as both backends are.
type migrating interface {
	storage.Store
	Migrate(ctx context.Context) error
	MigrateNow(ctx context.Context) error
	MigrationStatus(ctx context.Context) ([]migration.Status, error)
}

// open loads the configuration and opens the existing installation.
func (s settings) open(ctx context.Context, std std) (*app, error) {
	a, err := s.load(std)
	if err != nil {
		return nil, err
	}
	return a, a.openStore(ctx)
}

// openOrMake loads the configuration and opens the installation, or creates a new one, so that
// accounts can be added before the first start. A directory named by --data must exist, and so must
// the database of an existing key.
func (s settings) openOrMake(ctx context.Context, std std) (*app, error) {
	a, err := s.load(std)
	if err == nil {
		err = a.mayMake()
	}
	if err != nil {
		return nil, err
	}
	a.warnOfKeys()
	return a, a.openOrMakeStore(ctx)
}

// mayMake returns an error if a new installation might replace one that is elsewhere or was lost.
func (a *app) mayMake() error {
	if a.config.Postgres() {
		return nil
	}
	_, noDirectory := os.Stat(a.config.DataDir)
	_, noKey := os.Stat(a.keyPath())
	if noKey == nil || errors.Is(noDirectory, fs.ErrNotExist) && a.config.Origin("data_dir") == "--data" {
		return a.databaseIsThere()
	}
	return nil
}

// openToServe is openOrMake for the server. It creates the data directory, and refuses an exposed
// key.
func (s settings) openToServe(ctx context.Context, std std) (*app, error) {
	a, err := s.load(std)
	if err != nil {
		return nil, err
	}
	if err := a.guardKeys(); err != nil {
		return nil, err
	}
	if err := a.portsAreFree(ctx); err != nil {
		return nil, err
	}
	return a, a.await(ctx, a.openOrMakeStore)
}

func (a *app) openOrMakeStore(ctx context.Context) error {
	migrate := a.config.Database.Migrate == "auto"
	if err := a.databaseIsThere(); err != nil && !migrate {
		return fmt.Errorf("database.migrate is off, and %w; make it with: mcp-authd migrate up", err)
	}
	return a.makeStore(ctx, migrate)
}

// openWithNewKey loads the configuration and opens the existing installation. It also works while
// the successor of secret_key_old does not exist yet.
func (s settings) openWithNewKey(ctx context.Context, std std) (*app, error) {
	a, err := s.load(std)
	if err == nil {
		err = a.databaseIsThere()
	}
	if err != nil {
		return nil, err
	}
	return a, a.makeStore(ctx, false)
}

// openStore opens existing master keys and store, and creates nothing. A command in the wrong
// directory reports that, rather than an empty installation.
func (a *app) openStore(ctx context.Context) error {
	a.warnOfKeys()
	if err := a.loadKeys(a.keptKey); err != nil {
		return err
	}
	if err := a.databaseIsThere(); err != nil {
		return err
	}
	if err := a.use(ctx, false, a.belongs); err != nil {
		return err
	}
	return a.lastIssuer(ctx)
}

// lastIssuer makes a command use the issuer of the last start unless one is configured, because
// printed links must lead to that server. The directories of protect, demo and embedding programs
// have no configuration.
func (a *app) lastIssuer(ctx context.Context) error {
	if !a.config.IsDefault("issuer") {
		return nil
	}
	before, err := a.store.Remember(ctx, "issuer", nil)
	if err == nil && len(before) > 0 {
		a.config.Issuer = string(before)
	}
	return err
}

// makeStore opens master keys and store, and creates them on a first start.
func (a *app) makeStore(ctx context.Context, migrate bool) error {
	if err := a.loadKeys(a.makeKey); err != nil {
		return err
	}
	return a.use(ctx, migrate, a.claim)
}

// use opens the store and keeps it, if its schema is current and it belongs to our key.
func (a *app) use(ctx context.Context, migrate bool, belongs func(context.Context, storage.Store) error) error {
	store, err := a.openDatabase(ctx, migrate)
	if err != nil {
		return err
	}
	if !migrate {
		err = store.Ready(ctx)
	}
	if err == nil {
		err = belongs(ctx, store)
	}
	if err != nil {
		store.Close()
		return a.explainStore(err)
	}
	a.store = store
	return nil
}

// openDatabase opens the database. It creates a missing SQLite file.
func (a *app) openDatabase(ctx context.Context, migrate bool) (migrating, error) {
	var store migrating
	var err error
	if a.config.Postgres() {
		store, err = postgres.Open(ctx, string(a.config.Database.URL),
			postgres.Options{SkipMigrate: !migrate, Logger: a.log})
	} else {
		if err := os.MkdirAll(filepath.Dir(a.config.SQLitePath()), 0o700); err != nil {
			return nil, a.explainDirectory(fmt.Errorf("the data directory cannot be made: %w", err))
		}
		store, err = sqlite.Open(ctx, a.config.SQLitePath(), sqlite.Options{SkipMigrate: !migrate, Logger: a.log})
	}
	if err != nil {
		return nil, a.explainStore(err)
	}
	return store, nil
}

// databaseIsThere returns an error if the SQLite database is missing or empty.
func (a *app) databaseIsThere() error {
	if a.config.Postgres() || a.hasDatabase() {
		return nil
	}
	path := a.config.SQLitePath()
	switch _, err := os.Stat(path); {
	case err == nil:
		return fmt.Errorf(
			"the database %s is empty (0 bytes): restore its backup, or start over with: mcp-authd serve", path,
		)
	case errors.Is(err, fs.ErrPermission):
		return a.explainDirectory(fmt.Errorf("the database cannot be looked at: %w", err))
	}
	return a.nothingHere()
}

// hasDatabase reports whether a SQLite database exists and is not empty.
func (a *app) hasDatabase() bool { return secrets.HasContent(a.config.SQLitePath()) }

func (a *app) nothingHere() error {
	return fmt.Errorf(
		"there is no installation: %s does not exist (configuration: %s; data_dir: %s); name one with --data or --config, "+
			"or make a new one with: mcp-authd serve, or mcp-authd migrate up", a.config.SQLitePath(), a.configSource(),
		a.config.Origin("data_dir"))
}

// claim assigns a new database to our master key, or checks that it belongs to it.
func (a *app) claim(ctx context.Context, store storage.Store) error {
	return explainKey(keys.Claim(ctx, store, a.keys))
}

// belongs refuses a database that belongs to another master key.
func (a *app) belongs(ctx context.Context, store storage.Store) error {
	return explainKey(keys.Belongs(ctx, store, a.keys))
}

func explainKey(err error) error {
	if errors.Is(err, keys.ErrOtherKey) {
		return fmt.Errorf("%w; set secret_key to that one, or use another database "+
			"(to change it, keep the old one in secret_key_old until after: mcp-authd secret rotate)", err)
	}
	return err
}

const keyFile = "secret.key"

// loadKeys finds the master keys: from the configuration, from systemd, or, with SQLite, in the
// data directory.
func (a *app) loadKeys(kept func() ([]byte, error)) error {
	a.keys = nil
	primary := string(a.config.SecretKey)
	if file := a.credential(); primary == "" && file != "" {
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
		if err := a.addKey("secret_key", primary); err != nil {
			return err
		}
	case a.config.Postgres():
		return errors.New(
			"no secret key: with PostgreSQL set secret_key (or MCP_AUTHD_SECRET_KEY_FILE) to the same value on every replica; make one with: openssl rand -base64 32",
		)
	default:
		key, err := kept()
		if err != nil {
			return err
		}
		a.keys = append(a.keys, key)
	}
	for i, old := range a.config.SecretKeyOld {
		if err := a.addKey(fmt.Sprintf("secret_key_old[%d]", i), string(old)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) addKey(name, text string) error {
	k, err := secrets.ParseKey(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.keys = append(a.keys, k)
	return nil
}

func (a *app) keyPath() string { return filepath.Join(a.config.DataDir, keyFile) }

// keptKey reads the key in the data directory.
func (a *app) keptKey() ([]byte, error) {
	key, err := secrets.ReadKey(a.keyPath())
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return key, a.explainDirectory(err)
	case a.hasDatabase():
		return nil, a.missingKey()
	}
	return nil, a.databaseIsThere()
}

func (a *app) missingKey() error {
	return fmt.Errorf(
		"%[1]s is missing: put it back (%[2]s), from where it is kept with the backups, or set secret_key; "+
			"the sealed contents of %[3]s cannot be opened without it", keyFile, a.keyPath(), a.config.SQLitePath())
}

// makeKey reads the key in the data directory. It creates one for a new database, or as the
// successor of secret_key_old.
func (a *app) makeKey() ([]byte, error) {
	database := a.config.SQLitePath()
	if len(a.config.SecretKeyOld) > 0 {
		database = "" // the database belongs to the old key
	}
	_, missing := os.Stat(a.keyPath())
	if !a.hasDatabase() && missing == nil {
		a.log.Warn("there is a secret key, and its database is empty or gone: a new one begins; to go on with the earlier one, "+
			"stop this server and restore the backup", "database", a.config.SQLitePath(), "secret_key", a.keyPath())
	}
	key, err := secrets.KeptKey(a.keyPath(), database)
	if errors.Is(err, secrets.ErrMissing) {
		return nil, a.missingKey()
	}
	return key, a.explainDirectory(err)
}

// explainStore adds advice to the error of an unusable store.
func (a *app) explainStore(err error) error {
	where := "SQLite database " + a.config.SQLitePath()
	if a.config.Postgres() {
		where = "PostgreSQL"
	}
	flat := strings.Join(strings.Fields(err.Error()), " ")
	switch {
	case errors.Is(err, keys.ErrOtherKey):
		return err
	case errors.Is(err, storage.ErrSchema):
		return fmt.Errorf("%s: %s", where, oneLine(err))
	case errors.Is(err, sqlite.ErrDamaged):
		return fmt.Errorf("%s cannot be used: %s; stop the server, keep a copy of the file, and restore a backup",
			where, flat)
	case errors.Is(err, sqlite.ErrLocked):
		return fmt.Errorf(
			"%s cannot be used: %s; end that process, such as a backup program or an open transaction of sqlite3, and try again",
			where, flat,
		)
	case !a.config.Postgres():
		if advice := a.directoryAdvice(err); advice != "" {
			flat += "; " + advice
		}
		return fmt.Errorf("%s cannot be used: %s", where, flat)
	}
	advice := "check database.url and that the server is running"
	if postgres.Unauthorized(err) {
		advice = "check the user and the password in database.url, and that pg_hba.conf of the server lets them in"
	} else if grant := postgres.Denied(string(a.config.Database.URL), err); grant != "" {
		advice = "the server has let this user in, who lacks a right: as the owner of the database run " + grant
	}
	return explained{fmt.Errorf("%s cannot be opened: %s; %s", where, flat, advice), err}
}

// explained is an error with a text for administrators and a cause for the program.
type explained struct {
	error
	cause error
}

func (e explained) Unwrap() error { return e.cause }
