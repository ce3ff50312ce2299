package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// masterKeys returns the master keys, the primary first. It rejects a key file that other users can
// read or replace.
func (p *program) masterKeys() (out [][]byte, err error) {
	for i, key := range p.o.SecretKeys {
		if len(key) < secrets.KeySize {
			return nil, fmt.Errorf("mcpserver: SecretKeys[%d] has %d bytes, and needs %d: make one with: openssl rand %[3]d",
				i, len(key), secrets.KeySize)
		}
	}
	if len(p.o.SecretKeys) > 0 {
		return p.o.SecretKeys, nil
	}
	kept := filepath.Join(p.l.DataDir, "secret.key")
	given := p.l.SecretFiles()
	files := []string{given["$MCP_AUTHD_SECRET_KEY_FILE"], given["$MCP_AUTHD_SECRET_KEY_OLD_FILE"]}
	if p.l.SecretKey == "" {
		files = append(files, kept)
	}
	for _, file := range files {
		e, err := secrets.Guard(file, os.Getenv("KUBERNETES_SERVICE_HOST") != "")
		switch {
		case err != nil:
			return nil, fmt.Errorf("mcpserver: %w", err)
		case e.Wrong != "":
			p.log.Warn("the secret key may not be secret: "+e.Wrong, "file", file, "remedy", e.Remedy)
		}
	}
	key, err := p.primary(kept)
	if err != nil {
		return nil, fmt.Errorf("mcpserver: %w", err)
	}
	out = [][]byte{key}
	for _, old := range p.l.SecretKeyOld {
		if key, err = secrets.ParseKey(string(old)); err != nil {
			return nil, fmt.Errorf("mcpserver: secret_key_old: %w", err)
		}
		out = append(out, key)
	}
	return out, nil
}

// primary returns the configured master key, or the one in the data directory. It creates that key
// for a new database and when old keys are configured.
func (p *program) primary(kept string) ([]byte, error) {
	switch {
	case p.l.SecretKey != "":
		return secrets.ParseKey(string(p.l.SecretKey))
	case p.l.Postgres():
		return nil, errors.New("no secret key: with PostgreSQL set SecretKeys or MCP_AUTHD_SECRET_KEY_FILE, " +
			"to the same on every replica; make one with: openssl rand -base64 32")
	case len(p.l.SecretKeyOld) > 0:
		return secrets.KeptKey(kept, "") // the database uses the old key
	}
	return secrets.KeptKey(kept, p.l.SQLitePath())
}

func open(ctx context.Context, l *config.Loaded, log *slog.Logger) (store storage.Store, err error) {
	skip := l.Database.Migrate == "off"
	if l.Postgres() {
		store, err = postgres.Open(ctx, string(l.Database.URL), postgres.Options{SkipMigrate: skip, Logger: log})
	} else if err = os.MkdirAll(filepath.Dir(l.SQLitePath()), 0o700); err == nil {
		store, err = sqlite.Open(ctx, l.SQLitePath(), sqlite.Options{SkipMigrate: skip, Logger: log})
	}
	if err != nil {
		return nil, fmt.Errorf("mcpserver: the database cannot be opened: %w", err)
	}
	if skip {
		if err := store.Ready(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("mcpserver: %w", err), store.Close())
		}
	}
	return store, nil
}
