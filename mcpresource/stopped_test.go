package mcpresource

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/stopping"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pipetest"
)

// TestStop: RU-05. A stop ends listening streams at once and lets calls continue. Calls that do not
// finish get an error with their id, never an empty 200, and the audit log records it.
func TestStop(t *testing.T) {
	const finish = 30 * time.Second
	for _, tt := range []struct {
		name, method, body, kind string
		takes                    time.Duration // until the handler answers
		lasts                    time.Duration // until the request ends, after the stop
		status                   int
		answer                   string
		outcome                  Outcome
	}{
		{"RU-05 a call is answered", "POST", tool("read"), "", 20 * time.Second, 20 * time.Second, 200, "done",
			OutcomeOK},
		{"RU-05 a call on an event stream is answered", "POST", tool("read"), "text/event-stream", 20 * time.Second,
			20 * time.Second, 200, ": open\n\ndone", OutcomeOK},
		{"RU-05 a call that lasts too long has an error", "POST", tool("read"), "", time.Hour, finish, 503,
			`"id":7,"error":{"code":-32000,"message":"The server is stopping."`, OutcomeStopped},
		{"RU-05 so has one on an event stream", "POST", tool("read"), "text/event-stream", time.Hour, finish, 200,
			": open\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{", OutcomeStopped},
		{"RU-05 but not in the middle of an event", "POST", tool("read"), "text/event-stream; half", time.Hour, finish,
			200, ": open", OutcomeStopped},
		{"RU-05 a stream that listens ends at once", "GET", "", "text/event-stream", time.Hour, 0, 200, ": open\n\n", ""},
		{"RU-05 so does a subscription", "POST",
			`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{}}`, "text/event-stream", time.Hour, 0, 200,
			": open\n\n", OutcomeOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []CallEvent
				r := newRig(t, func(c *Config) {
					c.Resource, c.Now, c.Policy = "http://127.0.0.1/mcp", nil, nil
					c.Calls = func(_ context.Context, e CallEvent) { calls = append(calls, e) }
					c.Validator = ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
						return &Principal{
							Issuer: authServer, Subject: "a", Audience: []string{"http://127.0.0.1/mcp"},
							ExpiresAt: time.Now().Add(time.Hour)}, nil
					})
				})
				begun := make(chan struct{})
				r.next = func(w http.ResponseWriter, req *http.Request) {
					if tt.kind != "" {
						w.Header().Set("Content-Type", tt.kind)
						open := ": open\n\n"
						if strings.Contains(tt.kind, "half") {
							open = ": open"
						}
						io.WriteString(w, open)
						_ = http.NewResponseController(w).Flush()
					}
					close(begun)
					select {
					case <-req.Context().Done():
					case <-time.After(tt.takes):
						io.WriteString(w, "done")
					}
				}
				requests := stopping.NewRequests(t.Context())
				h := &http.Server{
					Handler: r.h, BaseContext: func(net.Listener) context.Context { return requests.Context() },
				}
				s := pipetest.NewServer(t, h)
				ended := make(chan error, 1)
				stopped := make(chan time.Time, 1)
				go func() {
					<-begun
					stopped <- time.Now()
					ended <- requests.End(finish, nil, h)
				}()
				req, _ := http.NewRequest(tt.method, "http://127.0.0.1/mcp", strings.NewReader(tt.body))
				req.Header.Set("Authorization", "Bearer t")
				resp, err := s.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				lasted := time.Since(<-stopped)
				if err != nil || resp.StatusCode != tt.status || !strings.Contains(string(got), tt.answer) ||
					strings.Contains(tt.kind, "half") && string(got) != tt.answer {
					t.Errorf("got %d %q, %v", resp.StatusCode, got, err)
				}
				if lasted != tt.lasts {
					t.Errorf("it lasted %s, want %s", lasted, tt.lasts)
				}
				if err := <-ended; err != nil {
					t.Errorf("the server ended with %v", err)
				}
				if tt.outcome != "" && (len(calls) != 1 || calls[0].Outcome != tt.outcome) {
					t.Errorf("the audit says %+v", calls)
				}
			})
		})
	}
}
