package bench

import (
	"context"
	"io"
	"log/slog"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/storage"
)

// BenchmarkAttempts is a sign-in with a browser session, from the authorization request to the tokens,
// without attempts and with all of its steps kept and written (OB-01: a tenth more at most).
func BenchmarkAttempts(b *testing.B) {
	for _, s := range stores {
		for _, kept := range []string{"off", "on"} {
			b.Run("store="+s.name+"/attempts="+kept, func(b *testing.B) {
				var keep []func(*authserver.Config)
				if kept == "on" {
					keep = append(keep, func(c *authserver.Config) { c.Attempts = recording(b, c) })
				}
				r := newRigWith(b, s.open(b), nil, authserver.DPoPPolicy{}, keep...)
				br := r.signedIn(b)
				b.ReportAllocs()
				for b.Loop() {
					page := br.send(b, "GET", authorizeURL, nil).Body.String()
					answer := br.submit(b, page, "/consent", url.Values{"decision": {"approve"}})
					back, err := url.Parse(answer.Header().Get("Location"))
					if err != nil {
						b.Fatal(err)
					}
					r.redeem(b, back.Query().Get("code"))
				}
			})
		}
	}
}

// recording is a recorder that writes as that of a server does. To it each step comes hours after the one
// before: it keeps all of them, though they are of one person.
func recording(b *testing.B, c *authserver.Config) *attempt.Recorder {
	begun, asked := time.Now(), atomic.Int64{}
	r := attempt.NewRecorder(attempt.Config{
		Store: c.Store.(storage.Attempts), // both stores have it
		Key:   make([]byte, 32),
		Now:   func() time.Time { return begun.Add(time.Duration(asked.Add(1)) * time.Hour) },
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	return r
}
