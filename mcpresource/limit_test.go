package mcpresource

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
)

func TestRates(t *testing.T) {
	limited := func(l Limits) *rig { return newRig(t, func(c *Config) { c.Limits, c.Audit = l, nil }) }
	count := func(t *testing.T, r *rig, n int, token, body string) (passed int) {
		t.Helper()
		for range n {
			switch w := r.call(token, body); {
			case w.Code == 200:
				passed++
			case w.Code != 429 || w.Header().Get("Retry-After") == "":
				t.Fatalf("got %d %v", w.Code, w.Header())
			}
		}
		return passed
	}
	t.Run("RS-189 there is a limit unless told otherwise", func(t *testing.T) {
		got := count(t, limited(Limits{}), 1200, "alice", tool("read"))
		if got != limits.DefaultRate*limits.BurstSeconds {
			t.Errorf("%d passed", got)
		}
		if got := count(t, limited(Limits{Calls: Rate{PerSecond: -1}}), 1200, "alice", tool("read")); got != 1200 {
			t.Errorf("without a limit %d passed", got)
		}
	})
	t.Run("RS-189 a tool has its own, each caller too", func(t *testing.T) {
		r := limited(Limits{
			Calls: Rate{PerSecond: 1, Burst: 100},
			Tools: map[string]Rate{
				"write_*": {PerSecond: 1, Burst: 5}, "write_logs": {PerSecond: 1, Burst: 2},
			},
		})
		for _, step := range []struct {
			token, tool string
			want        int
		}{{"admin", "write_file", 5}, {"admin", "write_other", 0}, {"writer", "write_file", 5}, {"admin", "read", 95}} {
			if got := count(t, r, 200, step.token, tool(step.tool)); got != step.want {
				t.Errorf("%s %s: %d passed, want %d", step.token, step.tool, got, step.want)
			}
		}
	})
	t.Run("RS-189 what is refused costs nothing, and time gives back", func(t *testing.T) {
		r := limited(Limits{Calls: Rate{PerSecond: 2, Burst: 4}})
		if got := count(t, r, 100, "alice", tool("read")); got != 4 {
			t.Errorf("%d passed", got)
		}
		r.now = r.now.Add(time.Second)
		if got := count(t, r, 100, "alice", tool("read")); got != 2 {
			t.Errorf("a second later %d passed", got)
		}
		if w := r.call("alice", tool("read")); w.Header().Get("Retry-After") != "1" {
			t.Errorf("got Retry-After %s", w.Header().Get("Retry-After"))
		}
		r.now = r.now.Add(time.Minute)
		if got := count(t, r, 100, "alice", tool("read")); got != 4 {
			t.Errorf("a minute later %d passed", got)
		}
	})
	t.Run("RS-190 completion counts, a list does not", func(t *testing.T) {
		r := limited(Limits{Calls: Rate{PerSecond: 1, Burst: 3}})
		if got := count(t, r, 9, "alice", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); got != 9 {
			t.Errorf("%d lists passed", got)
		}
		if got := count(t, r, 9, "alice",
			`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"hello"}}}`); got != 3 {
			t.Errorf("%d completions passed", got)
		}
	})
	t.Run("RS-196 strangers, by address", func(t *testing.T) {
		r := limited(Limits{Strangers: Rate{PerSecond: 1, Burst: 3}})
		try := func(remote, token string) int {
			req := httptest.NewRequest("POST", resource, strings.NewReader(tool("read")))
			req.RemoteAddr = remote
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			r.h.ServeHTTP(w, req)
			return w.Code
		}
		for _, step := range []struct {
			remote, token string
			want          int
		}{
			{"192.0.2.1:1", "", 401}, {"192.0.2.1:2", "junk", 401}, {"192.0.2.1:3", "", 401},
			{"192.0.2.1:4", "junk", 429}, {"192.0.2.1:5", "", 429},
			{"192.0.2.1:6", "alice", 200}, {"192.0.2.2:1", "", 401},
			{"[2001:db8::1]:1", "", 401}, {"[2001:db8::2]:1", "", 401}, {"[2001:db8::3]:1", "", 401},
			{"[2001:db8::4]:1", "", 429}, {"[2001:db8:0:1::1]:1", "", 401},
		} {
			if got := try(step.remote, step.token); got != step.want {
				t.Errorf("%+v: got %d", step, got)
			}
		}
	})
}

func TestConcurrency(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits.Concurrent, c.Audit, c.Limits.Calls.PerSecond = 3, nil, -1 })
	begun, finish := make(chan bool), make(chan bool)
	h := r.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		late := time.After(time.Minute) // one too many would wait forever
		select {
		case begun <- true:
			<-finish
		case <-late:
		}
	}))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { status(h, "alice", tool("read"), "") })
		<-begun
	}
	if got := status(h, "alice", tool("read"), ""); got != 429 {
		t.Errorf("RS-189 the fourth at once: got %d", got)
	}
	wg.Go(func() {
		if got := status(h, "bob", tool("read"), ""); got != 200 {
			t.Errorf("RS-197 another person: got %d", got)
		}
	})
	<-begun
	close(finish)
	wg.Wait()
	go func() { <-begun }()
	if got := status(h, "alice", tool("read"), ""); got != 200 {
		t.Errorf("RS-189 after they ended: got %d", got)
	}
	if r.load.underway.Len() != 0 {
		t.Errorf("RS-51 still counted: %v", r.load.underway.Len())
	}
	panics := r.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	for range 5 {
		func() {
			defer func() { recover() }()
			status(panics, "alice", tool("read"), "")
		}()
	}
	if r.load.underway.Len() != 0 {
		t.Errorf("RS-51 aborted ones are still counted: %v", r.load.underway.Len())
	}
}

func TestAdmit(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits = Limits{Calls: Rate{PerSecond: 1, Burst: 2}, Concurrent: 1} })
	ctx := NewContext(t.Context(), people(r.now)["alice"])
	op := Operation{Method: "tools/call", Name: "read"}
	var limit *LimitError
	release, err := r.Admit(ctx, op)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Admit(ctx, op); !errors.As(err, &limit) {
		t.Errorf("RS-189 a second at once: got %v", err)
	}
	release()
	release()                                        // once is enough
	if release, err = r.Admit(ctx, op); err != nil { // requests refused by Concurrent used up nothing
		t.Fatal(err)
	}
	release()
	if _, err := r.Admit(ctx, op); !errors.As(err, &limit) || limit.RetryAfter <= 0 {
		t.Errorf("RS-189 the third in a second: got %v", err)
	}
	if _, err := r.Admit(context.Background(), op); !errors.Is(err, ErrNoCaller) {
		t.Errorf("got %v", err)
	}
	if r.load.underway.Len() != 0 {
		t.Errorf("still counted: %v", r.load.underway.Len())
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Limits.Timeout, c.Now = 10*time.Second, time.Now })
		r.next = func(_ http.ResponseWriter, req *http.Request) {
			select {
			case <-req.Context().Done():
			case <-time.After(time.Minute):
			}
		}
		for _, tt := range []struct {
			name, body string
			want       int
			lasts      time.Duration
		}{
			{"RS-196 a call", tool("read"), 504, 10 * time.Second},
			{"RS-196 a call without a token", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 504, 10 * time.Second},
			{"RS-170 a stream that is meant to stay",
				`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, 200, time.Minute},
		} {
			began, token := time.Now(), []string{"Authorization", "Bearer alice"}
			if strings.Contains(tt.body, "ping") {
				token = nil
			}
			if w := r.do("POST", "/mcp", tt.body, token...); w.Code != tt.want || time.Since(began) != tt.lasts {
				t.Errorf("%s: got %d after %s", tt.name, w.Code, time.Since(began))
			}
		}
		began := time.Now()
		if w := r.do("GET", "/mcp", "", "Authorization", "Bearer alice"); w.Code != 200 ||
			time.Since(began) != time.Minute {
			t.Errorf("RS-98 a GET: got %d after %s", w.Code, time.Since(began))
		}
	})
}

func TestAnonymousSessions(t *testing.T) {
	r := newRig(t, func(c *Config) { publicly(c); c.MaxAnonymousSessions = 3 })
	r.next = opensSessions
	open := func(token string) (int, string) {
		var header []string
		if token != "" {
			header = []string{"Authorization", "Bearer " + token}
		}
		w := r.do("POST", "/mcp", initialize, header...)
		return w.Code, w.Header().Get("Mcp-Session-Id")
	}
	var last string
	for i, want := range []int{200, 200, 200, 429, 429} {
		code, id := open("")
		if code != want {
			t.Errorf("RS-196 %d: got %d, want %d", i, code, want)
		}
		if id != "" {
			last = id
		}
	}
	if code, _ := open("alice"); code != 200 {
		t.Errorf("got %d", code)
	}
	t.Run("RS-112 one that a person takes over has an owner then", func(t *testing.T) {
		if w := r.call("alice", tool("read"), "Mcp-Session-Id", last); w.Code != 200 {
			t.Fatalf("got %d", w.Code)
		}
		if code, _ := open(""); code != 200 {
			t.Errorf("got %d", code)
		}
		if code, _ := open(""); code != 429 {
			t.Errorf("and another: got %d", code)
		}
	})
	t.Run("RS-114 one that is in use stays counted", func(t *testing.T) {
		r := newRig(t, func(c *Config) { publicly(c); c.MaxAnonymousSessions = 1 })
		r.next = opensSessions
		id := r.do("POST", "/mcp", initialize).Header().Get("Mcp-Session-Id")
		for range 2 {
			r.now = r.now.Add(limits.SessionLive - time.Second)
			r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", id)
		}
		if w := r.do("POST", "/mcp", initialize); w.Code != 429 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("RS-114 those that rest make room", func(t *testing.T) {
		r.now = r.now.Add(limits.SessionLive + time.Second)
		if code, _ := open(""); code != 200 {
			t.Errorf("got %d", code)
		}
	})
}

// nobodyWaits is a custom limiter that allows everything.
type nobodyWaits struct{}

func (nobodyWaits) Allow(context.Context, *Principal, Operation) (time.Duration, bool) {
	return 0, true
}

// TestOwnLimiter: RS-189. A Limiter replaces the default rate, which is not an error in that case.
func TestOwnLimiter(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limiter, c.Limits.Concurrent, c.Audit = nobodyWaits{}, 10, nil })
	for i := range limits.DefaultRate*limits.BurstSeconds + 1 {
		if w := r.call("alice", tool("read")); w.Code != 200 {
			t.Fatalf("call %d: got %d", i, w.Code)
		}
	}
}
