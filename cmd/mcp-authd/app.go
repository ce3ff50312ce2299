package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

// app is the installation that a command works on.
type app struct {
	*installation.Installation
	std std
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
			err, installation.CurrentUser())
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
	if l.Strayed {
		fmt.Fprintf(std.err, "mcp-authd: using %s of the working directory\n", l.File)
	}
	return newApp(l, std)
}

// newApp returns the installation of a configuration, and validates it.
func newApp(l *config.Loaded, std std) (*app, error) {
	in, err := installation.New(l, std.host())
	return &app{Installation: in, std: std}, err
}

// host gives an installation what it needs from this process.
func (s std) host() installation.Host {
	return installation.Host{
		Environ: s.environ,
		Stdin:   s.in,
		Stdout:  s.out,
		Stderr:  s.err,
		Version: version().Version,
		Logger:  func(c config.Log) *slog.Logger { return newLogger(s, c) },
	}
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
		a.Value = slog.StringValue(label.Printable(a.Value.String()))
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
