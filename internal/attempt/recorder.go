package attempt

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Config configures a Recorder.
type Config struct {
	Store storage.Attempts
	// Key is the key of digests. It must be the same on every server, so that their steps can be
	// joined.
	Key []byte
	// Probes recognizes this installation's own tests, which are not recorded. Nil: no test is
	// recognized.
	Probes *Prober
	// Keep is how long steps are kept. Default: 7 days.
	Keep time.Duration
	Now  func() time.Time
	Log  *slog.Logger
}

// DefaultKeep is the default of Config.Keep.
const DefaultKeep = 7 * 24 * time.Hour

const (
	writeEvery   = time.Second
	writeTimeout = 5 * time.Second
	// maxQueue limits the steps that wait to be written, and maxBatch the steps in one write.
	maxQueue = 4096
	maxBatch = 256
)

// Recorder receives steps and stores them. No request waits for the store or fails because of it. A
// nil Recorder records nothing.
type Recorder struct {
	c     Config
	share *share
	calls *bounded.Limiter[string] // by network, see callsPerNetwork

	mu    sync.Mutex // guards the fields below
	queue []storage.AttemptStep
	held  []held
	after []Step // refreshes that may follow a reading, see follow
	lost  int    // since the last write
}

// NewRecorder returns a recorder. It fills in the defaults of c.
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

// Taken describes the end of a request.
type Taken struct {
	Kind   Kind   // "": not part of an attempt
	Path   string // already redacted
	Keys   Keys   // facts about the client and user
	Answer Answer
}

// End records the step of a request that has ended. It reads the record only if the step is worth
// storing.
func (r *Recorder) End(req *http.Request, rec *request.Record, t Taken) {
	if r == nil || t.Kind == "" || r.c.Probes.Signed(req) {
		return
	}
	seen := rec.Seen()
	grant := seen.Params.Get("grant_type")
	if t.Kind == Token && grant == oauth.GrantRefresh {
		t.Kind = Refresh
	}
	routine := t.routine(grant, t.Keys.Grant != "" || strings.Join(thread(seen), "") != "")
	if routine && t.Kind != Refresh {
		return
	}
	d := Digester(r.c.Key)
	at, from := rec.Arrival()
	s := d.arrived(rec.Reference(), req, from, at)
	d.see(&s, seen)
	s.end(t)
	if routine {
		r.mayFollow(s)
		return
	}
	r.take(s)
}

// end adds the end of the request.
func (s *Step) end(t Taken) {
	k := &s.Keys
	k.Client = cmp.Or(k.Client, t.Keys.Client)
	k.ClientName = cut(cmp.Or(t.Keys.ClientName, k.ClientName), maxValue)
	k.Person, k.PersonName = t.Keys.Person, cut(t.Keys.PersonName, maxValue)
	k.Resource, k.Match, k.Grant = cut(oauth.Redacted(t.Keys.Resource), maxValue), t.Keys.Match, t.Keys.Grant
	s.Kind, s.Request.Path = t.Kind, cut(t.Path, maxValue)
	a := &s.Answer
	a.Status, a.Took, a.Error, a.Cause = t.Answer.Status, t.Answer.Took, t.Answer.Error, t.Answer.Cause
	a.Description, a.Reason = Described(t.Answer.Description), Described(t.Answer.Reason)
}

// routine reports whether a step is not worth storing: a frequent successful request, or a user's
// sign-in to their own account page, which belongs to no attempt.
func (t Taken) routine(grantType string, ofAttempt bool) bool {
	switch t.Kind {
	case SignIn, Provider, Consent:
		return !ofAttempt && !t.Answer.failed()
	}
	switch grantType {
	case "", oauth.GrantCode:
		return false
	case oauth.GrantDeviceCode:
		return t.Answer.Error == string(oauth.AuthorizationPending) || t.Answer.Error == string(oauth.SlowDown)
	}
	return !t.Answer.failed()
}

func (r *Recorder) take(s Step) {
	within := r.share.admits(s)
	step := storage.AttemptStep{At: s.At, KeptUntil: s.At.Add(r.c.Keep)}
	if within {
		step.Keys, step.Body = s.all(), s.encode()
	}
	r.enqueue(step, within)
}

// enqueue queues a step for writing, if it is within the limits.
func (r *Recorder) enqueue(step storage.AttemptStep, within bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !within || len(r.queue) == maxQueue {
		r.lost++
		return
	}
	r.queue = append(r.queue, step)
}

// Run writes steps until ctx ends, and then writes the rest.
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

// Write stores the queued steps. Steps that cannot be stored are lost, which is logged.
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
