//go:build unix

package bench

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/internal/traces"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// turn is the number of operations per turn, without and with the measured part.
var turn = 100

// sight selects the parts of a server that observe it.
type sight struct{ audit, attempts, metrics, traces bool }

// BenchmarkSight measures the cost of each part, and of all together (OB-01: a tenth for attempts;
// OB-06: a twentieth for the audit log). It runs the same operations without and with it, in turns.
// The CPU time is that in this process, including writes after the responses and SQLite. The time
// is the response time. Other work on the machine affects medians of pairs of turns less than sums.
func BenchmarkSight(b *testing.B) {
	b.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // ms, so that a turn includes its own spans
	for _, s := range stores {
		for _, part := range []struct {
			name string
			on   sight
		}{
			{"audit", sight{audit: true}},
			{"attempts", sight{attempts: true}},
			{"metrics", sight{metrics: true}},
			{"traces", sight{traces: true}},
			{"all", sight{true, true, true, true}},
		} {
			off, on := newSeen(b, s.open(b), sight{}), newSeen(b, s.open(b), part.on)
			for _, op := range operations {
				b.Run("store="+s.name+"/"+part.name+"/"+op.name, func(b *testing.B) {
					takeTurns(b, off, on, op.begin(b, off), op.begin(b, on))
				})
			}
		}
	}
}

var operations = []struct {
	name  string
	begin func(*testing.B, *seen) func()
}{
	{"sign-in", signInSeen},
	{"refresh", func(b *testing.B, s *seen) func() {
		reply := s.redeem(b, s.approve(b))
		return func() { reply = s.refresh(b, reply.RefreshToken) }
	}},
	{"client_credentials", func(b *testing.B, s *seen) func() {
		return func() { s.post(b, "/token", url.Values{"grant_type": {"client_credentials"}}, true) }
	}},
	{"guarded_call", guardedCall},
}

// seen is a rig with some of the parts.
type seen struct {
	*rig
	recorder *audit.Recorder
	writer   *auditlog.Writer
	attempts *attempt.Recorder
	metrics  *metrics.Metrics
	traces   *traces.Traces
}

func newSeen(b *testing.B, store storage.Store, on sight) *seen {
	out := &seen{recorder: audit.New(discarded)}
	b.Cleanup(func() { store.Close() })
	if on.audit {
		out.writer = newWriter(b, store, false)
		out.recorder = out.recorder.Into(out.writer)
		running(b, out.writer.Run)
	}
	if on.traces {
		out.traces = tracing(b)
	}
	if on.metrics {
		out.metrics = metrics.New()
	}
	if on.metrics || on.traces {
		follow := out.traces.Store("sqlite")
		store.Hook(storage.Timed(time.Now,
			func(ctx context.Context, verb string, began time.Time, took time.Duration, err error) {
				out.metrics.Store(verb, took, err)
				follow(ctx, verb, began, took, err)
			}))
	}
	out.rig = newRigRecorded(b, store, nil, authserver.DPoPPolicy{}, out.recorder, func(c *authserver.Config) {
		if on.attempts {
			out.attempts = recording(b, store)
			c.Attempts = out.attempts
		}
		if on.metrics {
			c.Answered = func(a authserver.Answered) { out.metrics.Request(a.Endpoint, a.Status, a.Took) }
		}
	})
	if on.traces {
		out.Handler = out.traces.Handler(out.Handler)
	}
	return out
}

// running runs a server's background work.
func running(b *testing.B, run func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	b.Cleanup(func() {
		stop()
		<-done
	})
}

// recording returns a recorder that writes like a server's. Its clock advances by hours between
// steps, so it keeps all steps although they belong to one user.
func recording(b *testing.B, store storage.Store) *attempt.Recorder {
	begun, asked := time.Now(), atomic.Int64{}
	r := attempt.NewRecorder(attempt.Config{
		Store: store.(storage.Attempts), // all stores implement it
		Key:   make([]byte, 32),
		Now:   func() time.Time { return begun.Add(time.Duration(asked.Add(1)) * time.Hour) },
		Log:   discarded,
	})
	running(b, r.Run)
	return r
}

// tracing exports each span to a local collector, which drops it.
func tracing(b *testing.B) *traces.Traces {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}))
	b.Cleanup(collector.Close)
	t, err := traces.New(b.Context(), traces.Config{
		Endpoint: collector.URL, Sample: 1, Issuer: issuer, Logger: discarded, Told: func(string, int) {},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(t.Close)
	return t
}

// settling is longer than the delay of writes. Waiting costs some processor time, so both variants
// wait.
const settling = 300 * time.Millisecond

// settle waits until everything recorded is written.
func (s *seen) settle(b *testing.B) {
	time.Sleep(settling)
	wait.Poll(wait.Bound, func() bool { return !s.waits() })
	s.attempts.Write(b.Context())
}

func (s *seen) waits() bool {
	if s.writer == nil {
		return false
	}
	waiting, _ := s.writer.State()
	return waiting > 0
}

// signInSeen returns a sign-in with a browser session, from the authorization request to the
// tokens.
func signInSeen(b *testing.B, s *seen) func() {
	br := s.signedIn(b)
	return func() {
		page := br.send(b, http.MethodGet, authorizeURL, nil).Body.String()
		answer := br.submit(b, page, "/consent", url.Values{"decision": {"approve"}})
		back, err := url.Parse(answer.Header().Get("Location"))
		if err != nil {
			b.Fatal(err)
		}
		s.redeem(b, back.Query().Get("code"))
	}
}

// guardedCall returns a tool call through the guard and the gateway, over the network.
func guardedCall(b *testing.B, s *seen) func() {
	g, err := mcpresource.New(mcpresource.Config{
		Resource: resource, AuthorizationServers: []string{issuer},
		Validator: gateway.Remember(mcpresource.Local(s.server), time.Second, time.Now, func(bool) {}),
		Hosts:     []string{"127.0.0.1"}, Policy: &mcpresource.Rules{Base: []string{"mcp"}},
		Limits: mcpresource.Limits{Calls: mcpresource.Rate{PerSecond: -1}, Concurrent: 1000},
		Calls: func(ctx context.Context, e mcpresource.CallEvent) {
			s.metrics.ToolCall(resource, string(e.Outcome), e.Duration)
			s.recorder.Keep(ctx, audit.ToolCalled, slog.String("grant", e.Principal.GrantID()),
				slog.String("user", e.Principal.Subject), slog.String("client_id", e.Principal.ClientID),
				slog.String("resource", resource), slog.String("tool", e.Name),
				slog.String("outcome", string(e.Outcome)), slog.String("arguments_digest", e.Digest),
				slog.String("jti", e.Principal.TokenID), audit.Remote(e.RemoteAddr))
		},
		Audit:  func(e mcpresource.Event) { s.metrics.Guard(string(e.Outcome), e.Took) },
		Tracer: s.traces.Calls(false),
	})
	if err != nil {
		b.Fatal(err)
	}
	h := g.Protect(proxied(b, s.rig, mcpServer(b).URL))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "mcp.example.com"
		h.ServeHTTP(w, r)
	}))
	b.Cleanup(front.Close)
	token := s.redeem(b, s.approve(b)).AccessToken
	return func() {
		resp, err := http.DefaultClient.Do(request(b.Context(), http.MethodPost, front.URL, token))
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// takeTurns reports the medians of pairs of turns. Each variant runs first equally often.
func takeTurns(b *testing.B, off, on *seen, without, with func()) {
	var spent, took [2][]float64
	for n := 0; b.Loop(); n++ {
		for k := range 2 {
			which := (n + k) % 2
			began, used := time.Now(), cpu(b)
			for range turn {
				[]func(){without, with}[which]()
			}
			took[which] = append(took[which], float64(time.Since(began).Microseconds())/float64(turn))
			[]*seen{off, on}[which].settle(b)
			spent[which] = append(spent[which], float64((cpu(b)-used).Microseconds())/float64(turn))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(more(spent), "%-CPU")
	b.ReportMetric(more(took), "%-time")
	b.ReportMetric(median(spent[0]), "µs-CPU-off")
	b.ReportMetric(median(spent[1]), "µs-CPU-on")
}

// more returns the median overhead of the second over the first, in percent.
func more(of [2][]float64) float64 {
	var out []float64
	for i := range of[0] {
		out = append(out, 100*(of[1][i]/of[0][i]-1))
	}
	return median(out)
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
