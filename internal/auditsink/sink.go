// Package auditsink delivers the audit log to log destinations (OB-06). The log in the store is the
// queue. Each destination has a position in it, which advances when the receiver has accepted the
// entries before it. A receiver that is down therefore delays no response and loses nothing, for
// any length of time, and any number of replicas may run.
package auditsink

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Sink is a log destination.
type Sink interface {
	// Deliver delivers entries in order, and returns nil once the receiver has all of them. After
	// an error, the batch is repeated, even if a part has arrived. A refusedError says that the
	// receiver has the batch, and that some entries are permanently lost.
	Deliver(ctx context.Context, batch []auditformat.Entry) error
	// Close closes resources that Deliver has opened. A later Deliver opens them again.
	Close() error
}

// refusedError says how many entries of a batch a receiver will never accept.
type refusedError struct {
	entries int64
	why     string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the receiver refuses %s: %s", label.Count(e.entries, "entry", "entries"), e.why)
}

// Kind is a kind of log destination.
type Kind string

// The kinds.
const (
	Stdout  Kind = "stdout"
	File    Kind = "file"
	Syslog  Kind = "syslog"
	Webhook Kind = "webhook"
	OTLP    Kind = "otlp"
)

// Kinds lists all kinds.
var Kinds = []Kind{Stdout, File, Syslog, Webhook, OTLP}

// Names returns the names of kinds, as text.
func Names(kinds []Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// Config configures a log destination.
type Config struct {
	ID       string // identifies its position in the log
	Kind     Kind
	Format   auditformat.Format
	CAFile   string // certificate authorities of the server; "" for the system's
	File     Rotation
	Peer     Peer     // for syslog
	Endpoint Endpoint // for webhook and otlp
}

// Store is the part of the store that delivery needs.
type Store interface {
	storage.AuditLog
	storage.AuditSinks
	storage.Leases
}

// Options configures a Deliverer. All fields are required.
type Options struct {
	Sinks  []Config
	Source auditformat.Source
	Store  Store
	Now    func() time.Time // the clock of the store
	Log    *slog.Logger
	Stdout io.Writer
}

// Deliverer delivers the log to all destinations.
type Deliverer struct {
	o     Options
	id    string // of this process in the store
	lines []*line
}

// New returns a deliverer. It returns an error if a Config is invalid.
func New(o Options) (*Deliverer, error) {
	d := &Deliverer{o: o, id: secrets.ID("ads_")}
	for _, c := range o.Sinks {
		to, err := d.sink(c)
		if err != nil {
			return nil, fmt.Errorf("audit sink %s: %w", c.ID, err)
		}
		d.lines = append(d.lines, &line{d: d, name: c.ID, to: to})
	}
	return d, nil
}

func (d *Deliverer) sink(c Config) (Sink, error) {
	w := writer{c.Format, d.o.Source}
	roots, err := certificates(c.CAFile)
	if err != nil {
		return nil, err
	}
	c.Peer.Roots, c.Endpoint.Roots = roots, roots
	switch c.Kind {
	case Stdout:
		return newStream(w, d.o.Stdout), nil
	case File:
		return newFile(w, c.File, d.o.Now), nil
	case Syslog:
		return newSyslog(w, c.Peer), nil
	case Webhook:
		return newWebhook(w, c.Endpoint), nil
	case OTLP:
		return newOTLP(w, c.Endpoint, d.o.Now), nil
	}
	return nil, fmt.Errorf("unknown kind %q", c.Kind)
}

// certificates reads a file of certificates.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s has no certificates", file)
	}
	return pool, nil
}

// writer writes entries in a format.
type writer struct {
	format auditformat.Format
	source auditformat.Source
}

func (w writer) line(e auditformat.Entry) []byte { return w.format.Line(w.source, e) }

// lines returns entries with a line end after each.
func (w writer) lines(batch []auditformat.Entry) (out []byte) {
	for _, e := range batch {
		out = append(append(out, w.line(e)...), '\n')
	}
	return out
}
