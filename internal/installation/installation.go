// Package installation opens, creates and protects an installation: its configuration, master keys
// and store. It also backs it up, restores it, and moves it to another database.
package installation

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Host is what an installation needs from the process that uses it.
type Host struct {
	Environ        []string // like os.Environ
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string // of the program

	// Logger returns the log of the process. The configuration is valid. If nil, nothing is logged.
	Logger func(config.Log) *slog.Logger
}

// Lookup returns the value of a variable of an environment, or "" without it.
func Lookup(environ []string, name string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// Installation holds the parts that every command on an installation needs.
type Installation struct {
	Config  *config.Loaded
	Log     *slog.Logger
	Audit   *audit.Recorder
	Metrics *metrics.Metrics
	Store   storage.Store // nil until it is opened
	Keys    [][]byte      // master keys, the primary first

	host     Host
	now      func() time.Time
	notifier *notice.Notifier // created when needed
}

// New validates the configuration, and builds the parts that depend only on it. With an error, it
// returns the installation for messages alone.
func New(c *config.Loaded, h Host) (*Installation, error) {
	in := Quiet(c, h)
	if err := c.Validate(); err != nil {
		from := c.File
		if from == "" {
			from = "configuration"
		}
		return in, fmt.Errorf("%s:\n  %s", from, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	if h.Logger != nil {
		in.Log = h.Logger(c.Log)
	}
	in.Audit = assembly.Recorder(c, in.Log, in.Metrics.Count)
	in.warn()
	return in, nil
}

// Quiet returns the installation of a configuration that it does not validate. It logs nothing.
func Quiet(c *config.Loaded, h Host) *Installation {
	log := slog.New(slog.DiscardHandler)
	return &Installation{
		Config: c, Log: log, Audit: audit.New(log), Metrics: metrics.New(), host: h, now: time.Now,
	}
}

// warn logs settings that are valid and probably wrong.
func (in *Installation) warn() {
	for _, w := range in.Config.Warnings {
		in.Log.Warn(w)
	}
	for _, all := range in.Config.TrustsAll() {
		in.Log.Warn("trusted_proxies trusts every address, so each client can claim to be another: name the network of "+
			"your proxy", "trusted_proxies", all)
	}
	if what := in.Config.Login.Links.Warning(); what != "" {
		in.Log.Warn(what)
	}
	if what := in.Config.AuditWarning(); what != "" {
		in.Log.Warn(what)
	}
	for _, r := range in.Config.Resources {
		if oauth.InClear(r.URI) {
			in.Log.Warn("a resource is plain http: tokens can be read on the way; use https", "resource", r.URI)
		}
	}
	for _, c := range in.Config.Connectors() {
		for _, w := range c.Warnings() {
			in.Log.Warn(w)
		}
	}
}

// Parts returns the parts for building a server of this installation.
func (in *Installation) Parts() assembly.Parts {
	return assembly.Parts{
		Config: in.Config, Store: in.Store, Keys: in.Keys, Log: in.Log, Audit: in.Audit, Metrics: in.Metrics,
		Version: in.host.Version, Stdout: in.host.Stdout,
	}
}

// Source names the configuration file.
func (in *Installation) Source() string {
	if in.Config.File == "" {
		return "no file, defaults and environment"
	}
	return in.Config.File
}

// Admin returns the service that runs operations on the store. It notifies users of changes.
func (in *Installation) Admin() (*admin.Service, error) {
	if in.notifier == nil {
		notifier, err := in.Parts().Notifier()
		if err != nil {
			return nil, err
		}
		in.notifier = notifier
	}
	return in.Parts().Admin(in.notifier)
}

// Users returns the local accounts.
func (in *Installation) Users() (*users.Users, error) {
	service, err := in.Admin()
	if err != nil {
		return nil, err
	}
	return service.Users, nil
}

// letterTime is how long Close waits for the mail server.
const letterTime = 30 * time.Second

// Close delivers pending notifications, and closes the store.
func (in *Installation) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), letterTime)
	defer cancel()
	in.notifier.Drain(ctx)
	if in.Store == nil {
		return nil
	}
	return in.Store.Close()
}
