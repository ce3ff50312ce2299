package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// app holds the parts that every command on the installation needs: configuration, log, store and
// master keys.
type app struct {
	std      std
	config   *config.Loaded
	log      *slog.Logger
	audit    *audit.Recorder
	metrics  *metrics.Metrics
	store    storage.Store
	keys     [][]byte         // master keys, the primary first
	notifier *notice.Notifier // created when needed
}

// parts returns the parts for building a server of this installation.
func (a *app) parts() assembly.Parts {
	return assembly.Parts{
		Config: a.config, Store: a.store, Keys: a.keys, Log: a.log, Audit: a.audit, Metrics: a.metrics,
		Version: version().Version, Stdout: a.std.out,
	}
}

// settings holds the flags that select the configuration.
type settings struct {
	file, data string
	listen     string // these two are only for serve
	domain     string
}

func (s *settings) add(c *cobra.Command) {
	c.Flags().StringVar(&s.file, "config", "", "configuration file (default: the first found in the standard locations)")
	c.Flags().StringVar(&s.data, "data", "", "data directory, overrides the configuration")
}

// load reads and validates the configuration.
func (s settings) load(std std) (*app, error) {
	l, err := config.Load(config.Source{File: s.file, Environ: std.environ})
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w; this runs as %s: give that user the right to read it, or run this as another",
			err, currentUser())
	}
	if err != nil {
		return nil, err
	}
	if s.data != "" {
		l.DataDir = s.data
		l.SetOrigin("data_dir", "--data")
	}
	if s.domain != "" {
		l.ForDomain(s.domain)
	}
	if s.listen != "" {
		l.Listen = s.listen
		l.SetOrigin("listen", "--listen")
	}
	a := &app{std: std, config: l}
	if l.Strayed {
		fmt.Fprintf(std.err, "mcp-authd: using %s of the working directory\n", l.File)
	}
	return a, a.ready()
}

// configSource names the configuration file.
func (a *app) configSource() string {
	if a.config.File == "" {
		return "no file, defaults and environment"
	}
	return a.config.File
}

// ready validates the configuration, and builds the parts that depend only on it.
func (a *app) ready() error {
	if err := a.config.Validate(); err != nil {
		from := a.config.File
		if from == "" {
			from = "configuration"
		}
		return fmt.Errorf("%s:\n  %s", from, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	a.log = newLogger(a.std, a.config.Log)
	a.metrics = metrics.New()
	a.audit = assembly.Recorder(a.config, a.log, a.metrics.Count)
	for _, w := range a.config.Warnings {
		a.log.Warn(w)
	}
	for _, all := range a.config.TrustsAll() {
		a.log.Warn("trusted_proxies trusts every address, so each client can claim to be another: name the network of "+
			"your proxy", "trusted_proxies", all)
	}
	if what := a.config.Login.Links.Warning(); what != "" {
		a.log.Warn(what)
	}
	if what := a.config.AuditWarning(); what != "" {
		a.log.Warn(what)
	}
	for _, r := range a.config.Resources {
		if oauth.InClear(r.URI) {
			a.log.Warn("a resource is plain http: tokens can be read on the way; use https", "resource", r.URI)
		}
	}
	for _, c := range a.config.Connectors() {
		for _, w := range c.Warnings() {
			a.log.Warn(w)
		}
	}
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

// tells returns the notifier that tells users about the changes of a command.
func (a *app) tells() (*notice.Notifier, error) {
	if a.notifier != nil {
		return a.notifier, nil
	}
	notifier, err := a.parts().Notifier()
	a.notifier = notifier
	return notifier, err
}

// letterTime is how long a command waits for the mail server at its end.
const letterTime = 30 * time.Second

// Close delivers pending notifications, and closes the store.
func (a *app) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), letterTime)
	defer cancel()
	a.notifier.Drain(ctx)
	if a.store == nil {
		return nil
	}
	return a.store.Close()
}

// newLogger logs to stderr: readable text on a terminal, JSON otherwise.
func newLogger(s std, c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // validated
	f, isFile := s.err.(*os.File)
	terminal := isFile && isatty.IsTerminal(f.Fd())
	switch {
	case c.Format == "text" && !terminal:
		return slog.New(tint.NewTextHandler(s.err,
			&tint.Options{Level: level, ReplaceAttr: plainMessage, NoColor: true, TimeFormat: exactTime}))
	case c.Format == "text", c.Format == "auto" && terminal:
		return slog.New(tint.NewTextHandler(s.err,
			&tint.Options{Level: level, ReplaceAttr: plainMessage, TimeFormat: time.DateTime}))
	}
	return slog.New(slog.NewJSONHandler(escapingWriter{s.err},
		&slog.HandlerOptions{Level: level, ReplaceAttr: writeTime}))
}

// plainMessage escapes messages for a handler that quotes only attributes. An error in a message
// may contain text from an MCP server.
func plainMessage(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.MessageKey && len(groups) == 0 {
		a.Value = slog.StringValue(printable(a.Value.String()))
	}
	return a
}

// exactTime is the time format for programs: RFC 3339 with milliseconds. The log uses UTC, like the
// JSON output of commands.
const exactTime = "2006-01-02T15:04:05.000Z07:00"

func writeTime(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		a.Value = slog.StringValue(a.Value.Time().UTC().Format(exactTime))
	}
	return a
}
