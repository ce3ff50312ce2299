package mcpresource

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pipetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestExpiresUnderItsRequest: RS-41. If the token expires during a stream and the handler then
// sends nothing, the request is refused. An empty 200 would look like an answer, and the client
// would not refresh.
func TestExpiresUnderItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Now = time.Now })
		r.now = time.Now()
		short := people(r.now)["alice"]
		short.ExpiresAt = time.Now().Add(time.Minute)
		r.callers.validator = ValidatorFunc(func(context.Context, Credential) (*Principal, error) { return short, nil })
		r.next = func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }
		w := r.do("GET", "/mcp", "", "Authorization", "Bearer alice")
		if w.Code != 401 || r.events[len(r.events)-1].Outcome != OutcomeEnded {
			t.Errorf("got %d %s %+v", w.Code, w.Body, r.events)
		}
	})
}

// brief is an authorization server with a token that expires, and may be revoked.
type brief struct{ expires, revoked time.Time }

// Introspect implements Introspector.
func (b *brief) Introspect(ctx context.Context, _ string) (oauth.Introspection, error) {
	if revoked, _ := b.Revoked(ctx, oauth.Introspection{}); revoked || !time.Now().Before(b.expires) {
		return oauth.Introspection{}, nil // RFC 7662 §2.2: the same response for both
	}
	return oauth.Introspection{
		Active: true, Issuer: authServer, Subject: "alice", ClientID: "app", Audience: resource, Scope: "mcp",
		Expires: b.expires.Unix(), GrantID: "grant",
	}, nil
}

// Revoked implements revoker.
func (b *brief) Revoked(context.Context, oauth.Introspection) (bool, error) {
	return !b.revoked.IsZero() && !time.Now().Before(b.revoked), nil
}

// TestCallOutlivesItsToken: RU-06. The expiry of a token does not end a call that started with it;
// Overtime limits the call. A revocation ends it, before, around and after the expiry, if the
// issuer can distinguish the two.
func TestCallOutlivesItsToken(t *testing.T) {
	const left, never = time.Minute, time.Duration(0)
	inProcess := func(b *brief) Validator { return Local(b) }
	wrapped := func(b *brief) Validator {
		return AnyOf(ValidatorFunc(func(ctx context.Context, c Credential) (*Principal, error) {
			return Local(b).Validate(ctx, c)
		}))
	}
	asked := func(b *brief) Validator { return Local(struct{ Introspector }{b}) } // cannot distinguish the two
	for _, tt := range []struct {
		name                      string
		by                        func(*brief) Validator
		overtime, revoked, expect time.Duration
		status                    int
	}{
		{"RU-06 a call runs to its answer", inProcess, 0, never, 3 * time.Minute, 200},
		{"RU-06 a call ends after its overtime", inProcess, 90 * time.Second, never, left + 90*time.Second, 504},
		{"RU-06 a call ends with its token where there is no overtime", inProcess, -1, never, left, 401},
		{"RU-06 a revoked token ends the call", inProcess, 0, left / 3, left / 3, 401},
		{"RU-06 so does one that is revoked just before it expires", inProcess, 0, left - 3*time.Second,
			left - 3*time.Second, 401},
		{"RU-06 or when it expires", inProcess, 0, left, left, 401},
		{"RU-06 or after that", inProcess, 0, left + time.Minute, left + time.Minute, 401},
		{"RU-06 whatever stands before the issuer", wrapped, 0, left + time.Minute, left + time.Minute, 401},
		{"RU-06 where nobody can tell, the call has a minute", asked, 0, never, left + token.UnseenOvertime, 504},
		{"RU-06 or less", asked, time.Second, never, left + time.Second, 504},
		{"RU-06 and a revocation ends it as long as it is seen", asked, 0, left / 3, left / 3, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.Now, c.Limits.Overtime = time.Now, tt.overtime })
				began := time.Now()
				issuer := &brief{expires: began.Add(left)}
				if tt.revoked != never {
					issuer.revoked = began.Add(tt.revoked)
				}
				r.callers.validator = tt.by(issuer)
				r.next = func(w http.ResponseWriter, req *http.Request) {
					select {
					case <-req.Context().Done():
					case <-time.After(3 * time.Minute):
						w.WriteHeader(http.StatusOK)
					}
				}
				w := r.do("POST", "/mcp", tool("read"), "Authorization", "Bearer alice")
				lasted := time.Since(began)
				if w.Code != tt.status || lasted < tt.expect || lasted > tt.expect+judgeAgain {
					t.Errorf("got %d %s after %s", w.Code, w.Body, lasted)
				}
				if w.Code != 200 && !strings.Contains(w.Body.String(), `"id":7`) {
					t.Errorf("the error has no id: %s", w.Body)
				}
			})
		})
	}
}

// TestExpiresWhileItIsAsked: RS-98. A stream ends with its token even during a validation that does
// not return. The context has the deadline, and so have derived contexts.
func TestExpiresWhileItIsAsked(t *testing.T) {
	for _, lasts := range []time.Duration{judgeAgain / 2, 3 * judgeAgain / 2, time.Hour} {
		t.Run(lasts.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { expireAsked(t, lasts) }) })
	}
}

func expireAsked(t *testing.T, lasts time.Duration) {
	r := newRig(t, func(c *Config) { c.Now, c.ClockSkew = time.Now, time.Nanosecond })
	r.now = time.Now()
	expires := r.now.Add(lasts)
	var asked atomic.Int32
	alice := people(r.now)["alice"]
	alice.ExpiresAt = expires
	r.callers.validator = ValidatorFunc(func(ctx context.Context, _ Credential) (*Principal, error) {
		if asked.Add(1) > 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return alice, nil
	})
	r.next = func(_ http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), 24*time.Hour)
		defer cancel()
		if until, ok := ctx.Deadline(); !ok || until.Sub(expires).Abs() > time.Second {
			t.Errorf("the deadline is %s, want %s", until, expires)
		}
		<-ctx.Done()
		if late := time.Since(expires); late < 0 || late > time.Second {
			t.Errorf("ended %s after the token", late)
		}
		if err := req.Context().Err(); err != context.DeadlineExceeded || context.Cause(ctx) != errExpired {
			t.Errorf("got %v, because of %v", err, context.Cause(ctx))
		}
	}
	if w := r.do("GET", "/mcp", "", "Authorization", "Bearer alice"); w.Code != 401 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if want := lasts > judgeAgain; (asked.Load() > 1) != want {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestEndedIsNotAsked: RS-98. The token of a request that has ended is not validated again.
func TestEndedIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Now = time.Now })
		alice := people(time.Now())["alice"]
		asked := 0
		r.callers.validator = ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
			asked++
			return alice, nil
		})
		for _, method := range []string{"GET", "DELETE"} {
			if w := r.do(method, "/mcp", "", "Authorization", "Bearer alice"); w.Code != 200 {
				t.Errorf("%s: got %d %s", method, w.Code, w.Body)
			}
		}
		if wait.Advance(time.Minute); asked != 2 {
			t.Errorf("asked %d times for two requests", asked)
		}
	})
}

// TestUnreadStreamEnds: RS-98. A stream ends with its token even if its client does not read and a
// write would block forever.
func TestUnreadStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expires := time.Now().Add(time.Minute)
		g, err := New(Config{
			Resource: "http://127.0.0.1/mcp", AuthorizationServers: []string{authServer}, ClockSkew: time.Nanosecond,
			Validator: ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
				return &Principal{
					Issuer:    authServer,
					Subject:   "a",
					Audience:  []string{"http://127.0.0.1/mcp"},
					ExpiresAt: expires,
				}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		s := pipetest.NewServer(t, &http.Server{
			Handler: g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				defer close(ended)
				for {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						return
					}
				}
			})),
		})
		conn, err := s.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\n\r\n")
		<-ended
		if late := time.Since(expires) - writeTime; late.Abs() > time.Second {
			t.Errorf("the last write ended %v after its time", late)
		}
	})
}

// TestConnectionAfterAnEnd: the end of one request does not affect the next one on its connection.
func TestConnectionAfterAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Resource, c.Now, c.Policy, c.Limits.Timeout = "http://127.0.0.1/mcp", nil, nil, time.Second
			c.Validator = ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
				return &Principal{
					Issuer: authServer, Subject: "a", Audience: []string{"http://127.0.0.1/mcp"},
					ExpiresAt: time.Now().Add(time.Hour)}, nil
			})
		})
		r.next = func(_ http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Slow") != "" {
				<-req.Context().Done()
			}
		}
		s := pipetest.NewServer(t, &http.Server{Handler: r.h})
		connections := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(c httptrace.GotConnInfo) {
				if !c.Reused {
					connections++
				}
			},
		})
		for _, tt := range []struct {
			slow string
			want int
		}{{"yes", 504}, {"", 200}} {
			req, _ := http.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/mcp", strings.NewReader(tool("read")))
			req.Header.Set("Authorization", "Bearer t")
			req.Header.Set("Slow", tt.slow)
			resp, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != tt.want {
				t.Errorf("got %d, %v, want %d", resp.StatusCode, err, tt.want)
			}
			resp.Body.Close()
			wait.Advance(writeTime + time.Second) // past the deadline set at the end of the request
		}
		if connections != 1 {
			t.Errorf("%d connections were used", connections)
		}
	})
}
