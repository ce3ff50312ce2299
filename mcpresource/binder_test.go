package mcpresource

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`

// opensSessions answers like an MCP library, with a new id for each initialize.
func opensSessions(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodPost && req.Header.Get("Mcp-Session-Id") == "" {
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", opened.Add(1)))
	}
	w.WriteHeader(http.StatusOK)
}

var opened atomic.Int64

// publicly lets callers without a token open sessions.
func publicly(c *Config) { c.Policy.(*Rules).Public, c.Audit = []string{"initialize", "ping"}, nil }

func TestSessionOpenedByNobody(t *testing.T) {
	open := func(t *testing.T) (*rig, string) {
		r := newRig(t, publicly)
		r.next = opensSessions
		id := r.do("POST", "/mcp", initialize).Header().Get("Mcp-Session-Id")
		if id == "" {
			t.Fatal("no session")
		}
		return r, id
	}
	t.Run("RS-112 SP-14 it is of the first who uses it with a token, and of no other", func(t *testing.T) {
		r, id := open(t)
		if w := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", id); w.Code != 200 {
			t.Errorf("before: got %d", w.Code)
		}
		for _, step := range []struct {
			token string
			want  int
		}{{"alice", 200}, {"bob", 404}, {"alice", 200}} {
			if w := r.call(step.token, tool("read"), "Mcp-Session-Id", id); w.Code != step.want {
				t.Errorf("%s: got %d, want %d", step.token, w.Code, step.want)
			}
		}
	})
	t.Run("RS-112 RS-113 once bound it is closed to anonymous use", func(t *testing.T) {
		r, id := open(t)
		r.call("alice", tool("read"), "Mcp-Session-Id", id)
		if w := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", id); w.Code != 404 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("RS-112 of two at once one wins", func(t *testing.T) {
		r, id := open(t)
		h := r.Protect(http.HandlerFunc(opensSessions))
		var wg sync.WaitGroup
		won := map[string]*atomic.Int64{"alice": {}, "bob": {}}
		for i := range 32 {
			token := []string{"alice", "bob"}[i%2]
			wg.Go(func() {
				if status(h, token, tool("read"), id) == 200 {
					won[token].Add(1)
				}
			})
		}
		wg.Wait()
		if a, b := won["alice"].Load(), won["bob"].Load(); a+b != 16 || a*b != 0 {
			t.Errorf("alice passed %d times and bob %d times, want 16 and 0", a, b)
		}
	})
	t.Run("RS-112 the binder has the last word about who was first", func(t *testing.T) {
		m := NewMemorySessions(0)
		r := newRig(t, func(c *Config) { c.Sessions = &overtaken{SessionBinder: m} })
		if w := r.call("alice", tool("read"), "Mcp-Session-Id", "s"); w.Code != 404 || len(r.seen) != 0 {
			t.Errorf("got %d", w.Code)
		}
		if owner, _, _ := m.Owner(t.Context(), "s"); owner.Person != "bob" {
			t.Errorf("it belongs to %v now", owner)
		}
	})
	t.Run("RS-51 an id of any length is not kept", func(t *testing.T) {
		r := newRig(t, nil)
		if w := r.call("alice", tool("read"), "Mcp-Session-Id", strings.Repeat("x", maxSessionID+1)); w.Code != 404 ||
			len(r.seen) != 0 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("RS-110 an id that the server does not know is not kept", func(t *testing.T) {
		r := newRig(t, nil)
		r.next = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
		r.call("alice", tool("read"), "Mcp-Session-Id", "invented")
		if _, ok, _ := r.c.Sessions.Owner(t.Context(), "invented"); ok {
			t.Error("it is bound")
		}
	})
}

// overtaken binds the session to bob between the lookup and another user's claim.
type overtaken struct {
	SessionBinder
	looked bool
}

func (o *overtaken) Owner(ctx context.Context, id string) (Binding, bool, error) {
	if !o.looked {
		o.looked = true
		_, err := o.Claim(ctx, id, Binding{Person: "bob"})
		return Binding{}, false, err
	}
	return o.SessionBinder.Owner(ctx, id)
}

// status sends a request without the rig, which is not safe for concurrent use.
func status(h http.Handler, token, body, session string) int {
	req, w := httptest.NewRequest(http.MethodPost, resource, strings.NewReader(body)), httptest.NewRecorder()
	req.Header.Set("Authorization", "Bearer "+token)
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	h.ServeHTTP(w, req)
	return w.Code
}

func TestSessionLimit(t *testing.T) {
	limited := func(t *testing.T, max int) *rig {
		r := newRig(t, func(c *Config) { c.MaxSessions, c.Audit = max, nil })
		r.next = opensSessions
		return r
	}
	t.Run("RS-189 RS-197 one caller has so many sessions at once", func(t *testing.T) {
		r := limited(t, 2)
		var ids []string
		for range 2 {
			ids = append(ids, r.call("alice", initialize).Header().Get("Mcp-Session-Id"))
		}
		for _, body := range []string{initialize, "[" + initialize + "]"} {
			w := r.call("alice", body)
			if w.Code != 429 || w.Header().Get("Retry-After") == "" || len(r.seen) != 2 {
				t.Errorf("the third: got %d %v %s", w.Code, w.Header(), w.Body)
			}
		}
		if w := r.call("alice", tool("read"), "Mcp-Session-Id", ids[0]); w.Code != 200 {
			t.Errorf("in one that is open: got %d", w.Code)
		}
		if w := r.call("bob", initialize); w.Code != 200 {
			t.Errorf("another person: got %d", w.Code)
		}
		r.do("DELETE", "/mcp", "", "Authorization", "Bearer alice", "Mcp-Session-Id", ids[0])
		if w := r.call("alice", initialize); w.Code != 200 {
			t.Errorf("after one has ended: got %d", w.Code)
		}
		r.now = r.now.Add(limits.SessionLive + time.Second)
		if w := r.call("alice", initialize); w.Code != 200 {
			t.Errorf("after they rested: got %d", w.Code)
		}
	})
	t.Run("RS-189 taking over a session without an owner counts", func(t *testing.T) {
		r := limited(t, 2)
		for i, want := range []int{200, 200, 429} {
			if w := r.call("alice", tool("read"), "Mcp-Session-Id", fmt.Sprint("theirs", i)); w.Code != want {
				t.Errorf("%d: got %d, want %d", i, w.Code, want)
			}
		}
	})
	t.Run("RS-189 500 unless told, and any number when told", func(t *testing.T) {
		for max, want := range map[int]int{0: 429, -1: 200} {
			r := limited(t, max)
			for range 500 {
				r.now = r.now.Add(10 * time.Millisecond) // no faster than the rate limit allows
				r.call("alice", initialize)
			}
			if w := r.call("alice", initialize); w.Code != want {
				t.Errorf("%d: got %d, want %d", max, w.Code, want)
			}
		}
	})
	t.Run("RS-189 of many at once no more pass", func(t *testing.T) {
		r := limited(t, 3)
		release := make(chan struct{})
		h := r.Protect(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			select {
			case <-release:
			case <-time.After(time.Minute):
			}
			opensSessions(w, req)
		}))
		var wg sync.WaitGroup
		var passed, refused atomic.Int64
		for range 32 {
			wg.Go(func() {
				if status(h, "alice", initialize, "") == 200 {
					passed.Add(1)
				} else if refused.Add(1) == 29 {
					close(release)
				}
			})
		}
		wg.Wait()
		if passed.Load() != 3 {
			t.Errorf("%d passed, want 3", passed.Load())
		}
	})
	t.Run("RS-160 a server without sessions is not limited, nor one that fails", func(t *testing.T) {
		r := limited(t, 1)
		r.next = func(http.ResponseWriter, *http.Request) {}
		for range 5 {
			if w := r.call("alice", initialize); w.Code != 200 {
				t.Fatalf("got %d", w.Code)
			}
		}
		r.next = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		for range 2 {
			func() {
				defer func() { recover() }()
				r.call("alice", initialize)
			}()
		}
		r.next = opensSessions
		if w := r.call("alice", initialize); w.Code != 200 {
			t.Errorf("after aborted ones: got %d", w.Code)
		}
	})
	t.Run("RS-189 initialize counts in the rate", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Limits.Calls = Rate{PerSecond: 0.001, Burst: 2} })
		for i, want := range []int{200, 200, 429} {
			if w := r.call("alice", initialize); w.Code != want {
				t.Errorf("%d: got %d, want %d", i, w.Code, want)
			}
		}
	})
}
