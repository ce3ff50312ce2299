package attempt

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Config says what a Recorder works with.
type Config struct {
	Store storage.Attempts
	// Key is what digests are made by: the same on every server, so that their steps are joined.
	Key []byte
	// Probes recognizes the installation's own tests, which are not recorded. Nil: none are recognized.
	Probes *Prober
	// Keep is how long steps are kept. Default: 7 days.
	Keep time.Duration
	Now  func() time.Time
	Log  *slog.Logger
}

// DefaultKeep is how long steps are kept.
const DefaultKeep = 7 * 24 * time.Hour

const (
	writeEvery   = time.Second
	writeTimeout = 5 * time.Second
	// maxQueue bounds the steps that wait to be written, and maxBatch those that are written at once.
	maxQueue = 4096
	maxBatch = 256
)

// Recorder takes steps, and stores them. No request waits for that, or fails with it. Nil records nothing.
type Recorder struct {
	c     Config
	share *share
	calls *bounded.Limiter[string] // of networks, see callsPerNetwork

	mu    sync.Mutex // guards what follows
	queue []storage.AttemptStep
	held  []held
	after []Step // refreshes of which it is not known yet whether they follow a reading, see follow
	lost  int    // since the last write
}

// NewRecorder returns a recorder.
func NewRecorder(c Config) *Recorder {
	if c.Keep == 0 {
		c.Keep = DefaultKeep
	}
	return &Recorder{
		c:     c,
		share: newShare(c.Now),
		calls: bounded.NewLimiter[string](maxNetworks, c.Now),
	}
}

// Begin begins the step of a request that comes from an address. The draft is nil if no step is recorded.
func (r *Recorder) Begin(req *http.Request, from netip.Addr) (context.Context, *Draft) {
	if r == nil || r.c.Probes.Signed(req) {
		return req.Context(), nil
	}
	d := &Draft{digest: r.c.Key}
	d.begin(req, textOf(from), r.c.Now())
	return within(req.Context(), d), d
}

// Taken is how a request ended.
type Taken struct {
	Kind   Kind   // "": it is of no attempt
	Path   string // as it may be kept
	Keys   Keys   // what was found out of who asks
	Answer Answer // what no note has said
}

// End takes the step of a draft.
func (r *Recorder) End(d *Draft, t Taken) {
	if r == nil || d == nil || t.Kind == "" {
		return
	}
	d.mu.Lock()
	s := d.step
	d.mu.Unlock()
	if s.Kind == "" {
		s.Kind = t.Kind
	}
	if s.Kind == Token && s.param("grant_type") == oauth.GrantRefresh {
		s.Kind = Refresh
	}
	s.Request.Path = cut(t.Path, maxValue)
	s.add(t)
	switch {
	case !s.routine():
		r.take(s)
	case s.Kind == Refresh:
		r.mayFollow(s)
	}
}

// add adds how the request ended to what was noted.
func (s *Step) add(t Taken) {
	k, a := &s.Keys, &s.Answer
	k.Client = cmp.Or(k.Client, t.Keys.Client)
	k.ClientName = cut(cmp.Or(t.Keys.ClientName, k.ClientName), maxValue)
	k.Person, k.PersonName = t.Keys.Person, cut(t.Keys.PersonName, maxValue)
	k.Resource, k.Match, k.Grant = cut(oauth.Redacted(t.Keys.Resource), maxValue), t.Keys.Match, t.Keys.Grant
	a.Status, a.Took = t.Answer.Status, t.Answer.Took
	a.Reason = cmp.Or(Described(t.Answer.Reason), a.Reason)
	if t.Answer.Error != "" {
		a.Error, a.Description = t.Answer.Error, Described(t.Answer.Description)
		a.Cause = t.Answer.Cause
	}
}

// routine reports whether a step would say nothing: what succeeds all day long costs no row, nor does a
// person who signs in to go to their account.
func (s Step) routine() bool {
	switch s.Kind {
	case SignIn, Provider, Consent:
		return s.Keys.Thread == "" && s.Keys.Grant == "" && !s.failed()
	}
	switch s.param("grant_type") {
	case "", oauth.GrantCode:
		return false
	case oauth.GrantDeviceCode:
		return s.Answer.Error == string(oauth.AuthorizationPending) || s.Answer.Error == string(oauth.SlowDown)
	}
	return !s.failed()
}

func (r *Recorder) take(s Step) {
	within := r.share.admits(s)
	step := storage.AttemptStep{At: s.At, KeptUntil: s.At.Add(r.c.Keep)}
	if within {
		step.Keys, step.Body = s.all(), s.encode()
	}
	r.enqueue(step, within)
}

// enqueue adds a step to those that wait to be written, if it is within its bounds.
func (r *Recorder) enqueue(step storage.AttemptStep, within bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !within || len(r.queue) == maxQueue {
		r.lost++
		return
	}
	r.queue = append(r.queue, step)
}

// Run writes until ctx ends, and then what is left.
func (r *Recorder) Run(ctx context.Context) {
	if r == nil {
		return
	}
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.release(ctx, false)
			r.write(ctx)
			r.follow(ctx, false)
		case <-ctx.Done():
			r.Write(context.WithoutCancel(ctx))
			return
		}
	}
}

// Write stores the steps that wait. Those that cannot be stored are lost, which is logged.
func (r *Recorder) Write(ctx context.Context) {
	if r == nil {
		return
	}
	r.release(ctx, true)
	r.write(ctx)
	r.follow(ctx, true)
	r.write(ctx)
}

func (r *Recorder) write(ctx context.Context) {
	r.mu.Lock()
	steps, lost := r.queue, r.lost
	r.queue, r.lost = nil, 0
	r.mu.Unlock()
	var err error
	for len(steps) > 0 && err == nil {
		n := min(len(steps), maxBatch)
		if err = r.put(ctx, steps[:n]); err == nil {
			steps = steps[n:]
		}
	}
	if lost += len(steps); lost == 0 {
		return
	}
	attrs := []slog.Attr{slog.Int("lost", lost)}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	r.c.Log.LogAttrs(ctx, slog.LevelWarn, "some steps of attempts are not kept: there are too many, or the store fails",
		attrs...)
}

func (r *Recorder) put(ctx context.Context, steps []storage.AttemptStep) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return r.c.Store.PutSteps(ctx, steps)
}
