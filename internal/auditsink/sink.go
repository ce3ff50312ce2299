// Package auditsink delivers the audit log to other systems (OB-06). The log in the store is the queue:
// each sink has its place in it, which moves on when the receiver has what is before it. So a receiver
// that is away delays no answer and loses nothing, however long, and any number of replicas may run.
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
	"github.com/mcp-authd/mcp-authd/storage"
)

// Sink is what takes entries.
type Sink interface {
	// Deliver hands over entries, in their order, and returns nil when the receiver has them all. What
	// it returns an error for comes again, also where some of it has arrived; a refusedError says that
	// the receiver has the batch, and some of it is lost for good.
	Deliver(ctx context.Context, batch []auditformat.Entry) error
	// Close ends what Deliver has opened. A later Deliver opens it again.
	Close() error
}

// refusedError says how many entries of a batch a receiver will never take.
type refusedError struct {
	entries int64
	why     string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the receiver refuses %s: %s", label.Count(e.entries, "entry", "entries"), e.why)
}

// Kind is a kind of sink.
type Kind string

// The kinds.
const (
	Stdout  Kind = "stdout"
	File    Kind = "file"
	Syslog  Kind = "syslog"
	Webhook Kind = "webhook"
	OTLP    Kind = "otlp"
)

// Kinds are all of them.
var Kinds = []Kind{Stdout, File, Syslog, Webhook, OTLP}

// Names are the names of kinds, as text.
func Names(kinds []Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// Config is a sink as the operator wants it.
type Config struct {
	ID       string // names its place in the log
	Kind     Kind
	Format   auditformat.Format
	CAFile   string // certificates by which a server is known; "": those of the system
	File     Rotation
	Peer     Peer     // of syslog
	Endpoint Endpoint // of webhook and otlp
}

// Store is what delivering needs of the store.
type Store interface {
	storage.AuditLog
	storage.AuditSinks
	storage.Leases
}

// Options are what a Deliverer stands on. All fields are required.
type Options struct {
	Sinks  []Config
	Source auditformat.Source
	Store  Store
	Now    func() time.Time // the clock of the store
	Log    *slog.Logger
	Stdout io.Writer
}

// Deliverer delivers the log to all sinks.
type Deliverer struct {
	o     Options
	id    string // of this process at the store
	lines []*line
}

// New returns a deliverer. An error means that a sink cannot be made of its Config.
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
	return nil, fmt.Errorf("there is no kind %q", c.Kind)
}

// certificates reads a file of them.
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

// lines are entries with a line end after each.
func (w writer) lines(batch []auditformat.Entry) (out []byte) {
	for _, e := range batch {
		out = append(append(out, w.line(e)...), '\n')
	}
	return out
}
