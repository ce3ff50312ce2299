package authserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/proofstore"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// Options configures New. Issuer, Resources, and DataDir or Database are required. Every other zero
// value is a safe default.
type Options struct {
	// Issuer is the issuer identifier: an https URL (or http on loopback) without query, fragment
	// and trailing slash (RFC 8414 §2).
	Issuer string
	// DataDir is the directory of the master key, secret.key, and of the SQLite database,
	// mcp-authd.db. New creates them. The commands of mcp-authd work on this directory.
	DataDir string
	// Database is a URL such as "postgres://user@host/name", or the path of a SQLite file. Default:
	// mcp-authd.db in DataDir.
	Database string
	// SecretKeys are the master keys of at least 32 bytes each, the primary key first. Replicas
	// must share them. Default: secret.key in DataDir.
	SecretKeys [][]byte
	// Resources are the MCP servers that tokens can be for. The first one is the default for
	// clients that name none.
	Resources []Resource
	// Registration limits how clients register themselves. Default: they may register, and may have
	// a client ID metadata document.
	Registration RegistrationPolicy

	SignIn SignInPolicy
	Tokens TokenPolicy
	Keys   KeyPolicy
	// SessionTTL is how long a browser stays signed in. Default: 14 days, or 12 hours if the issuer
	// is http on loopback.
	SessionTTL time.Duration
	// ProductName is the name of this server on its pages. Default: "mcp-authd".
	ProductName string
	// TrustedProxies lists the proxies whose X-Forwarded-For is trusted. Default: none.
	TrustedProxies TrustedProxies
	Logger         *slog.Logger // default: discard
}

// RegistrationPolicy says which clients may introduce themselves.
type RegistrationPolicy struct {
	Closed      bool // no dynamic client registration (RFC 7591)
	NoDocuments bool // no client ID metadata documents
}

// Resource is an MCP server that access tokens can be for (RFC 8707, RFC 9728).
type Resource struct {
	URI    string // the URL of the MCP server for clients
	Name   string // for users, on the consent page
	Scopes []Scope
}

// Scope is a scope of a Resource.
type Scope struct {
	Name        string
	Description string // completes "The application will be able to ..."
	// Default scopes are requested at the first sign-in. Tools request others when they need them.
	Default bool
	// EveryCall scopes are needed by every call, so users cannot leave them out. Default: the first
	// default scope.
	EveryCall bool
	Dangerous bool     // granted only to a user who selects it
	Implies   []string // scopes that this one includes
}

// New opens the database and the master key, and returns a server on them. It migrates the
// database, and generates a signing key if the database contains none. Close the server after use.
//
// New does not include sign-in at other providers, audit log, API and console. Use package
// mcpserver or the program mcp-authd for these.
func New(ctx context.Context, o Options) (*Server, error) {
	secret, err := o.secretKeys()
	if err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	store, err := o.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	s, err := o.assemble(ctx, store, secret)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	s.closing = store.Close
	return s, nil
}

// Close closes the database that New opened. It returns nil for a server of Assemble, whose caller
// closes the store.
func (s *Server) Close() error {
	if s.closing == nil {
		return nil
	}
	return s.closing()
}

func (o Options) assemble(ctx context.Context, store storage.Store, secret [][]byte) (*Server, error) {
	registry, err := dcr.New(dcr.Config{
		Store: store, Holds: store, SecretKeys: secret, Logger: o.Logger,
		Disabled: o.Registration.Closed, Documents: dcr.Documents{Enabled: !o.Registration.NoDocuments},
	})
	if err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	c := Config{
		Issuer: o.Issuer, Store: store, SecretKeys: secret, Registry: registry,
		SignIn: o.SignIn, Tokens: o.Tokens, Keys: o.Keys, SessionTTL: o.SessionTTL,
		ProductName: o.ProductName, TrustedProxies: o.TrustedProxies, Logger: o.Logger,
	}
	if o.postgres() { // replicas share these counters
		c.Allowances, c.DPoP.Replays = store, proofstore.New(store, "token")
	}
	for _, r := range o.Resources {
		c.Resources = append(c.Resources, r.stored())
	}
	return Assemble(ctx, c)
}

func (r Resource) stored() storage.Resource {
	out := storage.Resource{URI: r.URI, Name: r.Name}
	for _, s := range r.Scopes {
		out.Scopes = append(out.Scopes, storage.ScopeText{
			Name: s.Name, Description: s.Description, Default: s.Default, EveryCall: s.EveryCall,
			Dangerous: s.Dangerous, Implies: s.Implies,
		})
	}
	return out
}

// secretKeys returns the given master keys, or the one in the data directory.
func (o Options) secretKeys() ([][]byte, error) {
	for i, key := range o.SecretKeys {
		if len(key) < secrets.KeySize {
			return nil, fmt.Errorf("SecretKeys[%d] has %d bytes, and needs %d", i, len(key), secrets.KeySize)
		}
	}
	switch {
	case len(o.SecretKeys) > 0:
		return o.SecretKeys, nil
	case o.DataDir == "":
		return nil, errors.New("the master key is missing: set DataDir or SecretKeys")
	case o.postgres():
		return nil, errors.New("the master key is missing: set SecretKeys, the same on every replica")
	}
	key, err := keys.SecretFile(filepath.Join(o.DataDir, "secret.key"), o.file())
	return [][]byte{key}, err
}

// file is the path of the SQLite database, "" if it cannot be known.
func (o Options) file() string {
	if o.Database == "" && o.DataDir != "" {
		return filepath.Join(o.DataDir, "mcp-authd.db")
	}
	return o.Database
}

func (o Options) postgres() bool {
	return strings.HasPrefix(o.Database, "postgres://") || strings.HasPrefix(o.Database, "postgresql://")
}

func (o Options) open(ctx context.Context) (storage.Store, error) {
	file := o.file()
	switch {
	case o.postgres():
		return postgres.Open(ctx, o.Database, postgres.Options{Logger: o.Logger})
	case file == "":
		return nil, errors.New("the database is missing: set DataDir or Database")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, file, sqlite.Options{Logger: o.Logger})
}
