//go:build unix

package bench

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/storage"
)

// auditRound is how many operations are done in turn without and with the audit log.
const auditRound = 200

// logged is a rig with an audit log; writer is nil for one without.
type logged struct {
	*rig
	recorder *audit.Recorder
	writer   *auditlog.Writer
}

func newLogged(b *testing.B, store storage.Store, on bool) *logged {
	out := &logged{recorder: audit.New(discarded)}
	b.Cleanup(func() { store.Close() })
	if on {
		out.writer = auditlog.NewWriter(auditlog.Options{Store: store, Dir: b.TempDir(), Now: time.Now, Log: discarded})
		out.recorder = out.recorder.Into(out.writer)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			out.writer.Run(ctx)
		}()
		b.Cleanup(func() {
			stop()
			<-done
		})
	}
	out.rig = newRigRecorded(b, store, nil, authserver.DPoPPolicy{}, out.recorder)
	return out
}

// settle waits until all entries are in the log.
func (l *logged) settle() {
	for waiting := 1; l.writer != nil && waiting > 0; waiting, _ = l.writer.State() {
		time.Sleep(10 * time.Millisecond)
	}
}

// BenchmarkAudit is what the audit log costs: the same operations without it and with it, in turns. The CPU
// time is that of the whole process with the batches that follow, SQLite included; the time is that of the
// answers.
func BenchmarkAudit(b *testing.B) {
	for _, s := range stores {
		for _, c := range []struct {
			name  string
			begin func(b *testing.B, l *logged) func()
		}{
			{"refresh", func(b *testing.B, l *logged) func() {
				reply := l.redeem(b, l.approve(b))
				return func() { reply = l.refresh(b, reply.RefreshToken) }
			}},
			{"client_credentials", func(b *testing.B, l *logged) func() {
				form := url.Values{"grant_type": {"client_credentials"}}
				return func() { l.post(b, "/token", form, true) }
			}},
			{"approval_and_code", func(b *testing.B, l *logged) func() {
				return func() {
					l.recorder.Record(b.Context(), audit.LoginSucceeded, audit.Person(l.user, "bench"))
					l.recorder.Record(b.Context(), audit.ConsentApproved, audit.Person(l.user, "bench"))
					l.redeem(b, l.approve(b))
				}
			}},
			{"guarded_call", guardedCall},
		} {
			b.Run("store="+s.name+"/"+c.name, func(b *testing.B) {
				off, on := newLogged(b, s.open(b), false), newLogged(b, s.open(b), true)
				compareAudit(b, c.begin(b, off), c.begin(b, on), on)
			})
		}
	}
}

// guardedCall is a call of a tool through the guard and the gateway, over the network.
func guardedCall(b *testing.B, l *logged) func() {
	inner := mcpServer(b)
	g, err := mcpresource.New(mcpresource.Config{
		Resource: resource, AuthorizationServers: []string{issuer},
		Validator: gateway.Remember(mcpresource.Local(l.server), time.Second, time.Now, func(bool) {}),
		Hosts:     []string{"127.0.0.1"}, Policy: &mcpresource.Rules{Base: []string{"mcp"}},
		Limits: mcpresource.Limits{Calls: mcpresource.Rate{PerSecond: -1}, Concurrent: 1000},
		Calls: func(ctx context.Context, e mcpresource.CallEvent) {
			l.recorder.Keep(ctx, audit.ToolCalled, slog.String("grant", e.Principal.GrantID()),
				slog.String("user", e.Principal.Subject), slog.String("client_id", e.Principal.ClientID),
				slog.String("resource", resource), slog.String("tool", e.Name),
				slog.String("outcome", string(e.Outcome)), slog.String("arguments_digest", e.Digest),
				slog.String("jti", e.Principal.TokenID), audit.Remote(e.RemoteAddr))
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	h := g.Protect(proxied(b, l.rig, inner.URL))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "mcp.example.com"
		h.ServeHTTP(w, r)
	}))
	b.Cleanup(front.Close)
	token := l.redeem(b, l.approve(b)).AccessToken
	return func() {
		resp, err := http.DefaultClient.Do(request(b.Context(), http.MethodPost, front.URL, token))
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

func compareAudit(b *testing.B, off, on func(), l *logged) {
	var spent, took [2]time.Duration
	for b.Loop() {
		for i, do := range []func(){off, on} {
			began, used := time.Now(), cpu(b)
			for range auditRound {
				do()
			}
			took[i] += time.Since(began)
			if i == 1 {
				l.settle()
			}
			spent[i] += cpu(b) - used
		}
	}
	n := float64(b.N * auditRound)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(spent[0].Microseconds())/n, "µs-CPU-off")
	b.ReportMetric(float64(spent[1].Microseconds())/n, "µs-CPU-on")
	b.ReportMetric(100*(float64(spent[1])/float64(spent[0])-1), "%-CPU")
	b.ReportMetric(100*(float64(took[1])/float64(took[0])-1), "%-time")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
