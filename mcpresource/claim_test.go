package mcpresource

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// counting is an MCP server with guessable ids. To ids that it has not issued, it answers 400 or
// the status unknown.
type counting struct {
	mu      sync.Mutex
	last    int
	known   map[string]bool
	unknown int
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		c.last++
		id = fmt.Sprint("s-", c.last)
		if c.known == nil {
			c.known = map[string]bool{}
		}
		c.known[id] = true
		w.Header().Set("Mcp-Session-Id", id)
	}
	if !c.known[id] {
		w.WriteHeader(c.unknown)
	}
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// through makes tokens of the form "user@application".
func through(c *Config) {
	inner := c.Validator
	c.Validator = ValidatorFunc(func(ctx context.Context, cred Credential) (*Principal, error) {
		who, app, _ := strings.Cut(cred.Token, "@")
		cred.Token = who
		p, err := inner.Validate(ctx, cred)
		if p != nil && app != "" {
			own := *p
			own.ClientID, p = app, &own
		}
		return p, err
	})
}

// TestClaimedSessions: security M5.
func TestClaimedSessions(t *testing.T) {
	for _, unknown := range []int{200, 202, 301, 400, 404, 500} {
		t.Run(fmt.Sprintf("SP-14 RS-112 who claims an id before it is given out has nothing of it: %d", unknown),
			func(t *testing.T) {
				r := newRig(t, nil)
				r.next = (&counting{unknown: unknown}).ServeHTTP
				for i := range 5 {
					r.call("bob", tool("read"), "Mcp-Session-Id", fmt.Sprint("s-", i+1))
				}
				id := r.call("alice", initialize).Header().Get("Mcp-Session-Id")
				for token, want := range map[string]int{"alice": 200, "bob": 404} {
					if w := r.call(token, tool("read"), "Mcp-Session-Id", id); w.Code != want {
						t.Errorf("%s in %s: got %d, want %d", token, id, w.Code, want)
					}
				}
			})
	}
	t.Run("RS-112 a claim counts when the server has accepted it", func(t *testing.T) {
		r := newRig(t, nil)
		server := &counting{unknown: 400}
		r.next = server.ServeHTTP
		r.call("bob", tool("read"), "Mcp-Session-Id", "s-1")
		server.known = map[string]bool{"s-1": true} // the guard has forgotten it
		for _, step := range []struct {
			token string
			want  int
		}{{"alice", 200}, {"bob", 404}, {"alice", 200}} {
			if w := r.call(step.token, tool("read"), "Mcp-Session-Id", "s-1"); w.Code != step.want {
				t.Errorf("%s: got %d, want %d", step.token, w.Code, step.want)
			}
		}
	})
	for name, next := range map[string]http.HandlerFunc{
		"aborted":          func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an informational": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(400) },
	} {
		t.Run("RS-112 nor does one that was not answered: "+name, func(t *testing.T) {
			r := newRig(t, nil)
			r.next = next
			func() {
				defer func() { recover() }()
				r.call("bob", tool("read"), "Mcp-Session-Id", "s")
			}()
			if owner, known, _ := r.c.Sessions.Owner(t.Context(), "s"); known {
				t.Errorf("it belongs to %v", owner)
			}
		})
	}
	t.Run("RS-112 an answer without a word counts as 200", func(t *testing.T) {
		r := newRig(t, nil)
		r.call("bob", tool("read"), "Mcp-Session-Id", "s")
		if owner, _, _ := r.c.Sessions.Owner(t.Context(), "s"); owner.Person != people(r.now)["bob"].Person() {
			t.Errorf("it belongs to %v", owner)
		}
	})
	t.Run("RS-112 an answer in a session that has become another person's is held back", func(t *testing.T) {
		for _, media := range []string{"application/json", "text/event-stream"} {
			r := newRig(t, func(c *Config) { c.Audit = nil })
			s := httptest.NewUnstartedServer(nil)
			ended := make(chan bool, 1)
			s.Config.Handler = r.Protect(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if err := r.c.Sessions.Open(req.Context(), "s", bindingOf(people(r.now)["alice"])); err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", media)
				w.Header().Set("Set-Cookie", "alice=secret")
				_, _ = io.WriteString(w, "alice's secret")
				if media == "text/event-stream" {
					<-req.Context().Done()
				}
				ended <- true
			}))
			s.Start()
			defer s.Close()
			req, _ := http.NewRequest(http.MethodPost, s.URL+"/mcp", strings.NewReader(tool("read")))
			req.Host = "mcp.example.com"
			req.Header.Set("Authorization", "Bearer bob")
			req.Header.Set("Mcp-Session-Id", "s")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 404 || strings.Contains(string(body), "secret") ||
				resp.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s: got %d %v %q, %v", media, resp.StatusCode, resp.Header, body, err)
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Errorf("%s: the handler runs on", media)
			}
		}
	})
	for _, owner := range []SessionOwner{OwnerPerson, OwnerClient} {
		nested := func(t *testing.T, meanwhile func(http.Handler)) (http.Handler, int) {
			r := newRig(t, func(c *Config) { c.SessionOwner = owner })
			var h http.Handler
			depth := 0
			h = r.Protect(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if depth++; depth == 1 {
					meanwhile(h)
					w.WriteHeader(http.StatusMethodNotAllowed)
				} else if depth == 2 && req.Header.Get("Mcp-Session-Id") != "" {
					status(h, "alice", initialize, "")
				} else if req.Header.Get("Mcp-Session-Id") == "" {
					w.Header().Set("Mcp-Session-Id", "s-1")
				}
			}))
			return h, status(h, "bob", tool("read"), "s-1")
		}
		t.Run(fmt.Sprintf("SP-14 RS-112 no caller is answered for a claim of theirs that another request waits for: %d",
			owner), func(t *testing.T) {
			second := 0
			h, _ := nested(t, func(h http.Handler) { second = status(h, "bob", tool("read"), "s-1") })
			if a := status(h, "alice", tool("read"), "s-1"); second != 404 || a != 200 {
				t.Errorf("bob %d, alice %d", second, a)
			}
		})
		t.Run(fmt.Sprintf("SP-14 RS-112 a refused claim takes back no session that was opened meanwhile: %d", owner),
			func(t *testing.T) {
				h, first := nested(t, func(h http.Handler) { status(h, "bob", initialize, "") })
				if a, b := status(h, "alice", tool("read"), "s-1"),
					status(h, "bob", tool("read"), "s-1"); first != 405 ||
					a != 404 || b != 200 {
					t.Errorf("first %d, alice %d, bob %d", first, a, b)
				}
			})
	}
	t.Run("RS-112 a session that the server opens for a caller without a token is no claimant's", func(t *testing.T) {
		r := newRig(t, publicly)
		r.next = (&counting{unknown: 200}).ServeHTTP
		r.call("bob", tool("read"), "Mcp-Session-Id", "s-1")
		id := r.do("POST", "/mcp", initialize).Header().Get("Mcp-Session-Id")
		if w := r.call("alice", tool("read"), "Mcp-Session-Id", id); w.Code != 200 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("RS-112 only initialize opens: what another answer names stays whose it is", func(t *testing.T) {
		r := newRig(t, nil)
		r.next = (&counting{unknown: 400}).ServeHTTP
		id := r.call("alice", initialize).Header().Get("Mcp-Session-Id")
		r.next = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Mcp-Session-Id", id)
			w.WriteHeader(200)
		}
		r.call("bob", tool("read"))
		if owner, _, _ := r.c.Sessions.Owner(t.Context(), id); owner.Person != people(r.now)["alice"].Person() {
			t.Errorf("it belongs to %v", owner)
		}
	})
	t.Run("RS-112 a session that cannot be bound is not handed out", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Sessions = unbinding{NewMemorySessions(0)} })
		r.next = (&counting{unknown: 400}).ServeHTTP
		if w := r.call("alice", initialize); w.Code != 503 || w.Header().Get("Mcp-Session-Id") != "" ||
			strings.Contains(w.Body.String(), "result") {
			t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
		}
	})
	t.Run("RS-114 a session that the server does not end stays its owner's", func(t *testing.T) {
		r := newRig(t, nil)
		r.next = (&counting{unknown: 400}).ServeHTTP
		id := r.call("alice", initialize).Header().Get("Mcp-Session-Id")
		r.next = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }
		r.do("DELETE", "/mcp", "", "Authorization", "Bearer alice", "Mcp-Session-Id", id)
		r.next = (&counting{known: map[string]bool{id: true}}).ServeHTTP
		if w := r.call("bob", tool("read"), "Mcp-Session-Id", id); w.Code != 404 {
			t.Errorf("got %d", w.Code)
		}
	})
}

type unbinding struct{ SessionBinder }

func (unbinding) Open(context.Context, string, Binding) error { return io.ErrUnexpectedEOF }

// TestClaimedSessionsRace: many callers claim ids while the server issues them. In the end each
// session belongs to its owner.
func TestClaimedSessionsRace(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Audit, c.Limits, c.MaxSessions = nil, Limits{Calls: Rate{PerSecond: -1}, Concurrent: -1}, -1
	})
	h := r.Protect(&counting{unknown: 200})
	const sessions = 200
	opened := make(chan string, sessions)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 * sessions {
				status(h, "bob", tool("read"), fmt.Sprint("s-", rand.IntN(sessions)+1))
			}
		})
	}
	for range sessions {
		all.Go(func() {
			req, w := httptest.NewRequest(http.MethodPost, resource, strings.NewReader(initialize)),
				httptest.NewRecorder()
			req.Header.Set("Authorization", "Bearer alice")
			h.ServeHTTP(w, req)
			opened <- w.Header().Get("Mcp-Session-Id")
		})
	}
	all.Wait()
	for range sessions {
		id := <-opened
		if a, b := status(h, "alice", tool("read"), id), status(h, "bob", tool("read"), id); a != 200 || b != 404 {
			t.Fatalf("%s: alice %d, bob %d", id, a, b)
		}
	}
	if r.sessions.opening.Len() != 0 {
		t.Errorf("still counted: %v", r.sessions.opening.Len())
	}
}

// TestSessionsOfPersons: a client that registers again for more scopes continues its session.
func TestSessionsOfPersons(t *testing.T) {
	for owner, want := range map[SessionOwner]int{OwnerPerson: 200, OwnerClient: 404} {
		var calls []CallEvent
		r := newRig(t, func(c *Config) {
			through(c)
			c.SessionOwner, c.Calls = owner, func(_ context.Context, e CallEvent) { calls = append(calls, e) }
		})
		r.next = opensSessions
		id := r.call("alice@first", initialize).Header().Get("Mcp-Session-Id")
		w := r.call("writer@second", tool("write_x"), "Mcp-Session-Id", id)
		if w.Code != want {
			t.Errorf("RS-112 another application of the same person: got %d, want %d", w.Code, want)
		}
		if want == 200 &&
			(calls[1].OpenedBy != "first" || r.events[1].OpenedBy != "first" || r.events[0].OpenedBy != "") {
			t.Errorf("the audit says %+v, %+v", calls, r.events)
		}
		if w := r.call("alice@second", tool("write_x"), "Mcp-Session-Id", id); w.Code != 403 {
			t.Errorf("RS-28 each request must have the scopes of its token: got %d", w.Code)
		}
		if w := r.call("bob@first", tool("read"), "Mcp-Session-Id", id); w.Code != 404 {
			t.Errorf("RS-112 another person with the same application: got %d", w.Code)
		}
		if w := r.call("alice@first", tool("read"), "Mcp-Session-Id", id); w.Code != 200 {
			t.Errorf("the first: got %d", w.Code)
		}
	}
}

// TestSessionsOfStatelessRequests: the session header is ignored, and is not forwarded to a server
// that would use it.
func TestSessionsOfStatelessRequests(t *testing.T) {
	r := newRig(t, nil)
	r.next = (&counting{unknown: 404}).ServeHTTP
	id := r.call("alice", initialize).Header().Get("Mcp-Session-Id")
	var reached []string
	r.next = func(w http.ResponseWriter, req *http.Request) {
		reached = append(reached, strings.Join(req.Header.Values("Mcp-Session-Id"), ","))
		w.WriteHeader(http.StatusNoContent)
	}
	modern := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Session-Id"}
	for _, named := range []string{id, "never-given-out", strings.Repeat("x", maxSessionID+1)} {
		if w := r.call("bob", tool("read"), append(modern, named)...); w.Code != http.StatusNoContent {
			t.Errorf("RS-160 %.20s: got %d %s", named, w.Code, w.Body)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		headers := append([]string{"Authorization", "Bearer bob"}, append(modern, id)...)
		if w := r.do(method, "/mcp", "", headers...); w.Code != http.StatusNoContent {
			t.Errorf("RS-160 %s: got %d %s", method, w.Code, w.Body)
		}
	}
	for _, got := range reached {
		if got != "" {
			t.Errorf("SP-14 the server got the session %.20s", got)
		}
	}
	if w := r.call("bob", tool("read"), "Mcp-Session-Id", id); w.Code != http.StatusNotFound {
		t.Errorf("SP-14 with a session: got %d", w.Code)
	}
	if w := r.call("alice", tool("read"), "Mcp-Session-Id", id); w.Code != http.StatusNoContent {
		t.Errorf("the session is still alice's: got %d", w.Code)
	}
}
