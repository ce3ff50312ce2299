package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// Options configures Serve. The zero value is a server on 127.0.0.1:8414 with a SQLite database.
type Options struct {
	// URL is the issuer: the URL of this host for clients, such as "https://notes.example.com". The
	// MCP server is at /mcp there. Default: http:// and the listen address, if that is on loopback.
	URL string
	// Listen is the address to listen on. Default: 127.0.0.1:8414.
	Listen string
	// Name is the display name for users. Default: the name of the MCP server.
	Name string
	// DataDir is the directory of the secret key and the database. Default: the value of systemd or
	// MCP_AUTHD_DATA_DIR, else a directory in ~/.local/share/mcp-authd named after the server.
	DataDir string
	// Database is a URL such as "postgres://user@host/name", or the path of a SQLite file. Default:
	// mcp-authd.db in DataDir.
	Database string
	// SecretKeys are the master keys of at least 32 bytes each, the primary key first. Replicas
	// must share them. Default: MCP_AUTHD_SECRET_KEY, or with SQLite secret.key in DataDir, which
	// is created at the first start.
	SecretKeys [][]byte
	// Providers are the identity providers that users can sign in with. Default: none.
	Providers []thirdparty.Connector
	// Config is an mcp-authd configuration file for all other settings. Default: the value of
	// MCP_AUTHD_CONFIG.
	Config string
	Logger *slog.Logger // default: slog.Default
	// Adapter holds further options of the MCP server. Default: gosdk.Options with ShowAll, so that
	// clients find tools that need more scopes. If Tasks has no store, tasks are kept in the
	// database, encrypted with the master key.
	Adapter *gosdk.Options
	// Adjust changes the configuration of the guard, such as its limits. Its Policy is the
	// *mcpresource.Rules of the tools. Audit, Calls and Check may already be set, for logs and the
	// audit log: a function that replaces one must call it.
	Adjust func(*mcpresource.Config)
	// Ready is called once the server accepts requests. Default: MCPURL and SetupLink are printed
	// to standard error.
	Ready func(Ready)
}

// Ready describes a running server.
type Ready struct {
	Name    string
	MCPURL  string // for clients
	DataDir string // for the commands of mcp-authd
	// SetupLink creates the first account, an administrator. It works once and for one hour, and is
	// "" if an account exists. Show it only to the operator, and keep it out of logs.
	SetupLink string
}

func (r Ready) print() {
	if r.SetupLink != "" {
		fmt.Fprintf(os.Stderr, "Make the first account (valid 1 h, once): %s\n", r.SetupLink)
	}
	fmt.Fprintf(os.Stderr, "%s is ready: %s\n", r.Name, r.MCPURL)
}

// path is the path of the MCP server below the issuer.
const path = "/mcp"

// load returns the configuration for o, without its resource.
func (o *Options) load() (*config.Loaded, error) {
	file := cmp.Or(o.Config, os.Getenv("MCP_AUTHD_CONFIG"))
	l, err := config.Load(config.Source{File: cmp.Or(file, os.DevNull), Environ: os.Environ()})
	if err != nil {
		return nil, fmt.Errorf("mcpserver: %w", err)
	}
	if file == "" {
		l.File = "this program" // how messages refer to the configuration
	}
	set := func(key, value, option string, to *string) {
		if value != "" {
			*to = value
			l.SetOrigin(key, option)
		}
	}
	set("issuer", strings.TrimSuffix(o.URL, "/"), "URL", &l.Issuer)
	set("listen", o.Listen, "Listen", &l.Listen)
	set("data_dir", o.DataDir, "DataDir", &l.DataDir)
	set("database.url", o.Database, "Database", (*string)(&l.Database.URL))
	for _, p := range o.Providers {
		l.ThirdParty = append(l.ThirdParty, config.ConnectorOf(p))
	}
	for _, r := range l.Resources {
		if r.Upstream.Set() {
			return nil, fmt.Errorf("mcpserver: %s: the resource %s has an upstream, which mcp-authd serve is for: leave it out here",
				l.File, r.URI)
		}
	}
	return l, nil
}

// settle sets the values that depend on the address and the server, and validates the
// configuration.
func (o *Options) settle(ctx context.Context, l *config.Loaded, tools *gosdk.Tools, at net.Addr) error {
	if err := o.issuer(l, at); err != nil {
		return err
	}
	if err := tools.Configure(new(mcpresource.Config)); err != nil {
		return err
	}
	self := tools.Implementation(ctx)
	own, err := resource(l.Issuer+path, cmp.Or(o.Name, self.Title, self.Name, l.Issuer+path), tools)
	if err != nil {
		return err
	}
	l.Resources = slices.Insert(l.Resources, 0, own) // the default for clients that name no resource
	if l.IsDefault("branding.name") {
		l.Branding.Name = own.Name
	}
	if l.IsDefault("data_dir") && os.Getenv("STATE_DIRECTORY") == "" {
		name := strings.Trim(notInName.ReplaceAllString(self.Name, "-"), "-.")
		if name == "" {
			return errors.New("mcpserver: the server has no name that a directory could have: set DataDir")
		}
		l.DataDir = filepath.Join(l.DataDir, name)
	}
	if err := l.Validate(); err != nil {
		return explain(err, len(l.ThirdParty)-len(o.Providers))
	}
	return nil
}

// notInName matches characters that are replaced in a directory name.
var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// issuer sets the issuer URL. It has a default only on loopback.
func (o *Options) issuer(l *config.Loaded, at net.Addr) error {
	if !l.IsDefault("issuer") {
		u, err := url.Parse(l.Issuer)
		if err != nil || u.Host == "" || u.Path != "" {
			return fmt.Errorf("mcpserver: URL %q is not that of a host, such as https://notes.example.com; the MCP server is at %s there",
				l.Issuer, path)
		}
		if err := metadata.ValidateIssuer(l.Issuer); err != nil {
			return fmt.Errorf("mcpserver: URL: %s", strings.TrimPrefix(err.Error(), "metadata: "))
		}
		return nil
	}
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() || l.TLS.Cert != "" {
		return fmt.Errorf("mcpserver: it listens on %s: set URL to how clients reach it, such as https://notes.example.com "+
			"(by way of a proxy that terminates TLS), or listen on 127.0.0.1:%s without TLS", at, port)
	}
	l.Issuer = "http://" + net.JoinHostPort(host, port)
	return nil
}

// resource returns the configuration of the MCP server as a resource, from its declared tools.
func resource(uri, name string, tools *gosdk.Tools) (config.Resource, error) {
	out := config.Resource{URI: uri, Name: name}
	for _, s := range tools.Scopes() {
		if s.Description == "" {
			return out, fmt.Errorf("mcpserver: the scope %q has no Description, which the consent page shows: "+
				"declare it with one, such as \"read your notes\"", s.Name)
		}
		out.Scopes = append(out.Scopes, storage.ScopeText{
			Name:        s.Name,
			Description: s.Description,
			Default:     s.First,
			EveryCall:   tools.Default(s.Name),
			Implies:     s.Implies,
			Access:      storage.Access(s.Access),
			Dangerous:   s.Dangerous,
		})
	}
	if !slices.ContainsFunc(out.Scopes, func(s storage.ScopeText) bool { return s.EveryCall }) {
		return out, errors.New("mcpserver: no scope is Default; an application asks for the default scopes first: " +
			"call gosdk.NewTools with one, such as gosdk.Scope{Name: \"mcp\", Description: \"use this server\"}")
	}
	return out, nil
}

// explain rephrases configuration errors in terms of Options, one line each. The first fromFile
// providers are from the file.
func explain(err error, fromFile int) error {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		for key, option := range map[string]string{
			"issuer: ": "URL: ", "listen: ": "Listen: ", "database.url: ": "Database: ",
		} {
			if rest, ok := strings.CutPrefix(line, key); ok {
				line = option + rest
			}
		}
		var i int
		if n, _ := fmt.Sscanf(line, "resources[0].scopes[%d]:", &i); n == 1 {
			_, rest, _ := strings.Cut(line, ": ")
			line = "the scope " + rest
		}
		if n, _ := fmt.Sscanf(line, "thirdparty[%d]", &i); n == 1 && i >= fromFile {
			_, rest, _ := strings.Cut(line, "]")
			line = fmt.Sprintf("Providers[%d]%s", i-fromFile, rest)
		}
		lines = append(lines, "mcpserver: "+line)
	}
	return errors.New(strings.Join(lines, "\n"))
}
