package assembly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	checkpointEvery = time.Minute
	firstCheckpoint = 5 * time.Second
	checkpointTime  = 10 * time.Second
	auditCountEvery = 5 * time.Second
	firstForget     = 2 * time.Minute
	forgetEvery     = time.Hour
	forgetTime      = 10 * time.Minute
)

// Recorder returns the recorder of a server. It logs to log, and counts with count. Routine events
// are logged at level DEBUG unless full detail is configured.
func Recorder(c *config.Loaded, log *slog.Logger, count audit.Counter) *audit.Recorder {
	r := audit.New(log, count)
	if c.Audit.Full() {
		return r
	}
	return r.RoutineAt(slog.LevelDebug)
}

// logCalls returns a function that logs calls. Successful tool calls are logged at the level of
// routine events.
func (p Parts) logCalls(log *slog.Logger) func(context.Context, mcpresource.CallEvent) {
	logged := mcpresource.LogCalls(log)
	return func(ctx context.Context, e mcpresource.CallEvent) {
		if e.Outcome != mcpresource.OutcomeOK || log.Enabled(ctx, p.Audit.RoutineLevel()) {
			logged(ctx, e)
		}
	}
}

// auditWriter returns the writer of the audit log, or nil if the audit log is off.
func (p Parts) auditWriter() *auditlog.Writer {
	if !p.Config.Audit.Enabled {
		return nil
	}
	o := auditlog.Options{
		Store: p.Store,
		Now:   p.Now,
		Log:   p.Log,
		MAC:   p.auditMAC(),
		Full:  p.Config.Audit.Full(),
	}
	if p.Config.DataDir != "" {
		o.Dir = filepath.Join(p.Config.DataDir, "audit")
	}
	return auditlog.NewWriter(o)
}

// auditMAC returns a function that opens the MAC of the audit log. The first server creates it.
func (p Parts) auditMAC() func(context.Context) (*auditlog.MAC, error) {
	return auditlog.MACOf(p.Store, p.Keys, auditOrigin(p.Config.Issuer), p.Now)
}

// keepCall returns a function that records tool calls in the audit log: the caller, the tool, the
// digest of the arguments, and the result (OB-05). Calls of unknown callers are only in the
// server's log.
func (p Parts) keepCall(resource string) func(context.Context, mcpresource.CallEvent) {
	return func(ctx context.Context, e mcpresource.CallEvent) {
		who := e.Principal
		if e.Method != "tools/call" || who == nil {
			return
		}
		attrs := []slog.Attr{
			slog.String("grant", who.GrantID()), slog.String("user", who.Subject),
			slog.String("client_id", who.ClientID), slog.String("resource", resource), slog.String("tool", e.Name),
			slog.String("outcome", string(e.Outcome)), slog.String("arguments_digest", e.Digest),
			slog.String("jti", who.TokenID), slog.Time("at", p.correct(e.Time)), audit.Remote(e.RemoteAddr),
		}
		if e.Clearance != "" {
			attrs = append(attrs, slog.String("clearance", e.Clearance))
		}
		p.Audit.Keep(ctx, audit.ToolCalled, attrs...)
	}
}

// beginWithin limits how long a tool call waits for its audit entry.
const beginWithin = 5 * time.Second

// beginCall returns a function that delays a tool call until an entry about its start is in the
// audit log, because its effect cannot be undone.
func (p Parts) beginCall(
	resource string,
) func(context.Context, *mcpresource.Principal, mcpresource.Operation) error {
	return func(ctx context.Context, who *mcpresource.Principal, op mcpresource.Operation) error {
		if op.Method != "tools/call" {
			return nil
		}
		recorded, pending := audit.Awaited(ctx)
		p.Audit.Keep(recorded, audit.ToolBegun, slog.String("grant", who.GrantID()), slog.String("user", who.Subject),
			slog.String("client_id", who.ClientID), slog.String("resource", resource), slog.String("tool", op.Name),
			slog.String("arguments_digest", mcpresource.Digest(op.Arguments)), slog.String("jti", who.TokenID))
		ctx, cancel := context.WithTimeout(ctx, beginWithin)
		defer cancel()
		if err := pending.Wait(ctx); err != nil {
			return fmt.Errorf("%w: audit.required: %w", mcpresource.ErrUnavailable, err)
		}
		return nil
	}
}

// correct converts a time of this machine to the clock of the store.
func (p Parts) correct(at time.Time) time.Time {
	if p.Store == nil {
		return at
	}
	return p.Store.Correct(at)
}

// AuditSigner returns the signer of audit log checkpoints. The first call creates the key and the
// seal of the log.
func (p Parts) AuditSigner(ctx context.Context) (*auditlog.Signer, error) {
	return auditlog.Open(ctx, p.Store, p.Keys, auditOrigin(p.Config.Issuer), p.Now())
}

// AuditChecker is AuditSigner for readers: it creates nothing. It returns storage.ErrNotFound if no
// server has started the log.
func (p Parts) AuditChecker(ctx context.Context) (*auditlog.Signer, error) {
	return auditlog.Open(ctx, p.Store, p.Keys, "", p.Now())
}

// AuditKeys returns the public key of the audit log and its seal. Both are empty if no server has
// started the log.
func (p Parts) AuditKeys(ctx context.Context) (auditlog.Keys, error) {
	signer, err := p.AuditChecker(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return auditlog.Keys{}, nil
	}
	if err != nil {
		return auditlog.Keys{}, err
	}
	return auditlog.Keys{Public: signer.Key(), Signer: signer}, nil
}

// auditOrigin returns the name of an issuer's log: its URL without the scheme (C2SP
// tlog-checkpoint).
func auditOrigin(issuer string) string {
	name := issuer
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		name = u.Host + strings.TrimSuffix(u.Path, "/")
	}
	return strings.NewReplacer("+", "-", " ", "-").Replace(name) + "/audit"
}

// runAudit appends to the audit log, and signs checkpoints. The returned function waits until all
// events recorded so far are in the log and signed.
func (s *Server) runAudit(ctx context.Context) (settle func()) {
	if s.audit == nil {
		return func() {}
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	loops.Go(func() { s.audit.Run(working) })
	loops.Go(func() { s.countAudit(working) })
	signing := &checkpoints{parts: s.parts}
	loops.Go(func() { signing.run(working) })
	loops.Go(func() { s.forget(working) })
	return func() {
		stop()
		loops.Wait()
		signing.sign(context.WithoutCancel(ctx))
	}
}

func (s *Server) countAudit(ctx context.Context) {
	for s.parts.Metrics != nil && ctx.Err() == nil {
		waiting, lost := s.audit.State()
		s.parts.Metrics.AuditLog(waiting, lost)
		select {
		case <-ctx.Done():
		case <-time.After(auditCountEvery):
		}
	}
}

// forget removes entries older than audit.keep.
func (s *Server) forget(ctx context.Context) {
	if s.parts.Config.Audit.Keep == 0 {
		return
	}
	for next := firstForget; ; next = forgetEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		if err := s.parts.forgetOld(ctx); err != nil {
			s.parts.Log.WarnContext(ctx, "entries of the audit log that are older than audit.keep are not removed yet",
				"error", err)
		}
	}
}

func (p Parts) forgetOld(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, forgetTime)
	defer cancel()
	signer, err := p.AuditSigner(ctx)
	if err != nil {
		return err
	}
	old := auditlog.Retention{Store: p.Store, Signer: signer, Audit: p.Audit, Keep: time.Duration(p.Config.Audit.Keep)}
	_, err = old.Remove(ctx, p.Now())
	return err
}

// checkpoints signs the log while the server runs.
type checkpoints struct {
	parts   Parts
	signer  *auditlog.Signer // nil until the store contains its key
	since   time.Time        // the last signature, or the start of this server
	written int64            // the size of the last checkpoint in the file
	posted  int64            // the size of the last one that the receiver accepted
	failed  bool             // the receiver did not accept the last one
}

// run signs once a minute. The first signature, soon after the start, covers the unsigned entries
// of an earlier server.
func (c *checkpoints) run(ctx context.Context) {
	c.since = c.parts.Now()
	next := time.NewTimer(firstCheckpoint)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			c.sign(ctx)
			next.Reset(checkpointEvery)
		}
	}
}

func (c *checkpoints) sign(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, checkpointTime)
	defer cancel()
	err := c.checkpoint(bounded)
	if err != nil && ctx.Err() != nil {
		return // a stopping server no longer signs
	}
	now := c.parts.Now()
	if err != nil {
		c.parts.Log.ErrorContext(ctx, "the audit log is not signed", "error", err)
	} else {
		c.since = now
	}
	if c.parts.Metrics != nil {
		c.parts.Metrics.AuditUnsigned(max(0, now.Sub(c.since)))
	}
}

func (c *checkpoints) checkpoint(ctx context.Context) (err error) {
	if c.signer == nil {
		if c.signer, err = c.parts.AuditSigner(ctx); err != nil {
			return err
		}
	}
	newest, err := c.signer.Checkpoint(ctx, c.parts.Now())
	if err != nil {
		return err
	}
	if c.parts.Metrics != nil {
		c.parts.Metrics.AuditSigned(newest.Size)
	}
	c.post(ctx, newest)
	file := c.parts.Config.Audit.CheckpointFile
	if file == "" || newest.Size == c.written {
		return nil
	}
	if err := replaceFile(file, newest); err != nil {
		return err
	}
	c.written = newest.Size
	return nil
}

// post posts a checkpoint. A refused one is dropped, because the next one covers it.
func (c *checkpoints) post(ctx context.Context, newest storage.AuditCheckpoint) {
	to := c.parts.Config.Audit.CheckpointURL
	if to == "" || newest.Size == c.posted {
		return
	}
	u, err := url.Parse(to)
	if err != nil {
		return // Validate has refused it
	}
	client := safehttp.New(safehttp.Options{
		Networks: c.parts.Config.Audit.Networks(), InsecureLoopback: oauth.IsLoopbackHost(u.Hostname()),
	})
	status, _, err := client.Push(ctx, to, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, newest.Signed)
	if err == nil && (status < 200 || status > 299) {
		err = fmt.Errorf("it answers %d", status)
	}
	if err == nil {
		c.posted, c.failed = newest.Size, false
		return
	}
	if !c.failed {
		c.parts.Log.WarnContext(ctx, "the receiver of checkpoints of the audit log does not take them; it is tried "+
			"again each minute", "host", u.Host, "error", brief(strings.ReplaceAll(err.Error(), to, u.Host)))
	}
	c.failed = true
}

// replaceFile writes a checkpoint atomically: readers see either this one or the previous one.
func replaceFile(path string, c storage.AuditCheckpoint) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".checkpoint-")
	if err != nil {
		return err
	}
	_, err = f.Write(c.Signed)
	if err == nil {
		err = f.Chmod(0o644) // it is public, because other users verify it
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
