package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/postgres"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// app is what every command that touches the installation stands on: configuration,
// log, store and master keys.
type app struct {
	std     std
	config  *config.Loaded
	log     *slog.Logger
	audit   *audit.Recorder
	metrics *metrics
	store   storage.Store
	keys    [][]byte // master keys, the primary first
	// delegation signs people in at upstream providers; nil while no server is wired, or
	// no provider configured.
	delegation *thirdparty.Delegation
}

// settings are the flags by which a command finds the configuration.
type settings struct{ file, data string }

func (s *settings) add(c *cobra.Command) {
	c.Flags().StringVar(&s.file, "config", "", "configuration file (default: the first of the usual places)")
	c.Flags().StringVar(&s.data, "data", "", "data directory, overrides the configuration")
}

// load reads and validates the configuration.
func (s settings) load(std std) (*app, error) {
	l, err := config.Load(config.Source{File: s.file, Environ: std.environ})
	if err != nil {
		return nil, err
	}
	if s.data != "" {
		l.DataDir = s.data
		l.SetOrigin("data_dir", "--data")
	}
	a := &app{std: std, config: l}
	return a, a.ready()
}

// ready validates the configuration and builds what depends on it alone.
func (a *app) ready() error {
	if err := a.config.Validate(); err != nil {
		from := a.config.File
		if from == "" {
			from = "configuration"
		}
		return fmt.Errorf("%s:\n  %s", from, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	a.log = newLogger(a.std, a.config.Log)
	a.metrics = newMetrics()
	a.audit = audit.New(a.log, a.metrics.count)
	for _, w := range a.config.Warnings {
		a.log.Warn(w)
	}
	return nil
}

// open loads the configuration, the master keys and the store.
func (s settings) open(ctx context.Context, std std) (*app, error) {
	a, err := s.load(std)
	if err != nil {
		return nil, err
	}
	return a, a.openStore(ctx, a.config.Database.Migrate == "auto")
}

func (a *app) openStore(ctx context.Context, migrate bool) error {
	if err := a.loadKeys(); err != nil {
		return err
	}
	store, err := a.openDatabase(ctx, migrate)
	if err != nil {
		return err
	}
	if err := a.checkFingerprint(ctx, store); err != nil {
		store.Close()
		return err
	}
	a.store = store
	return nil
}

func (a *app) openDatabase(ctx context.Context, migrate bool) (migrating, error) {
	var store migrating
	var err error
	where := "SQLite database " + a.config.SQLitePath()
	if a.config.Postgres() {
		where = "PostgreSQL"
		store, err = postgres.Open(ctx, string(a.config.Database.URL), postgres.Options{SkipMigrate: !migrate, Logger: a.log})
	} else {
		if err := os.MkdirAll(filepath.Dir(a.config.SQLitePath()), 0o700); err != nil {
			return nil, fmt.Errorf("the data directory cannot be made: %w; choose another with --data", err)
		}
		store, err = sqlite.Open(ctx, a.config.SQLitePath(), sqlite.Options{SkipMigrate: !migrate, Logger: a.log})
	}
	switch {
	case errors.Is(err, storage.ErrSchema):
		return nil, fmt.Errorf("%s: %s", where, oneLine(err))
	case err != nil:
		return nil, fmt.Errorf("%s cannot be opened: %s; check database.url and that the server is running", where, strings.Join(strings.Fields(err.Error()), " "))
	}
	return store, nil
}

// checkFingerprint refuses to go on without the master key that the database belongs to,
// be it the primary or an older one: nothing sealed in it could be opened.
func (a *app) checkFingerprint(ctx context.Context, store storage.Store) error {
	var first []byte
	for i, k := range a.keys {
		ring, err := secrets.NewRing(k)
		if err != nil {
			return err
		}
		fp := ring.Fingerprint()
		if i == 0 {
			if first, err = store.Fingerprint(ctx, fp); err != nil {
				if schema := store.Ready(ctx); errors.Is(schema, storage.ErrSchema) {
					err = schema // there is no table to read, and it says what to run
				}
				return fmt.Errorf("the database cannot be read: %s", oneLine(err))
			}
		}
		if string(fp) == string(first) {
			return nil
		}
	}
	return errors.New("the secret key is not the one this database was made with; set secret_key to that one, or use another database " +
		"(to change it, keep the old one in secret_key_old until after: mcp-authd secret rotate)")
}

const keyFile = "secret.key"

// loadKeys finds the master keys: configured, or handed over by systemd, or, with
// SQLite, kept in the data directory, where the first start makes one.
func (a *app) loadKeys() error {
	primary := string(a.config.SecretKey)
	if dir := lookup(a.std.environ, "CREDENTIALS_DIRECTORY"); primary == "" && dir != "" {
		if b, err := os.ReadFile(filepath.Join(dir, "secret_key")); err == nil {
			primary = strings.TrimSpace(string(b))
		}
	}
	switch {
	case primary != "":
		if err := a.addKey("secret_key", primary); err != nil {
			return err
		}
	case a.config.Postgres():
		return errors.New("no secret key: with PostgreSQL set secret_key (or MCP_AUTHD_SECRET_KEY_FILE) to the same value on every replica; make one with: openssl rand -base64 32")
	default:
		kept, err := secrets.KeptKey(filepath.Join(a.config.DataDir, keyFile))
		if err != nil {
			return fmt.Errorf("%w; choose another directory with --data", err)
		}
		a.keys = append(a.keys, kept)
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

func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// accounts returns the local accounts, for commands that do not run the server.
func (a *app) accounts() (*users.Users, error) {
	return users.New(users.Config{Store: a.store, Audit: a.audit, Logger: a.log})
}

// Close releases the store.
func (a *app) Close() error {
	if a.store == nil {
		return nil
	}
	return a.store.Close()
}

// newLogger logs to stderr: readably on a terminal, as JSON otherwise.
func newLogger(s std, c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // validated
	f, isFile := s.err.(*os.File)
	terminal := isFile && isatty.IsTerminal(f.Fd())
	switch {
	case c.Format == "text" && !terminal:
		return slog.New(tint.NewHandler(s.err, &tint.Options{Level: level, NoColor: true}))
	case c.Format == "text", c.Format == "auto" && terminal:
		return slog.New(tint.NewHandler(s.err, &tint.Options{Level: level}))
	}
	return slog.New(slog.NewJSONHandler(s.err, &slog.HandlerOptions{Level: level}))
}
