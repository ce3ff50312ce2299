package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// watched is a store of requests with keys that a test can inspect and delay.
type watched struct {
	storage.KeyedRequests
	mu     sync.Mutex
	last   storage.KeyedRequest
	sealed []byte
	ended  func() error // replaces storing the response; nil to store it
}

func (w *watched) BeginKeyed(
	ctx context.Context, r storage.KeyedRequest, most int, now time.Time,
) (storage.KeyedRequest, bool, error) {
	stored, begun, err := w.KeyedRequests.BeginKeyed(ctx, r, most, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = stored
	return stored, begun, err
}

func (w *watched) EndKeyed(ctx context.Context, key storage.Hash, sealed []byte) error {
	w.mu.Lock()
	w.sealed = sealed
	ended := w.ended
	w.mu.Unlock()
	if ended != nil {
		return ended()
	}
	return w.KeyedRequests.EndKeyed(ctx, key, sealed)
}

// TestOnce checks that a change with a key is made once (OB-10).
func TestOnce(t *testing.T) {
	const invite = "/users/eve/invitation"
	base := newRig(t)
	base.person("root", admin.Administrator, "admin:write", time.Minute)
	base.person("second", admin.Administrator, "admin:write", time.Minute)
	base.person("sue", admin.Support, "admin:write", time.Minute)
	other := *base.tokens["root"]
	other.ClientID = "another app"
	base.tokens["elsewhere"] = &other
	run := func(name string, test func(t *testing.T, r *rig)) {
		t.Run("OB-10 "+name, func(t *testing.T) {
			r := *base
			r.T = t
			test(t, &r)
		})
	}
	replayed := func(w *httptest.ResponseRecorder) string { return w.Header().Get("Idempotency-Replayed") }
	var first *httptest.ResponseRecorder

	run("the answer comes again as it was", func(t *testing.T, r *rig) {
		first = r.do("root", "POST", invite, "{}", "Idempotency-Key", "a")
		again := r.do("root", "POST", invite, "{}", "Idempotency-Key", "a")
		if first.Code != 200 || replayed(first) != "" || replayed(again) != "true" || again.Code != 200 ||
			!slices.Equal(first.Body.Bytes(), again.Body.Bytes()) ||
			first.Header().Get("Content-Type") != again.Header().Get("Content-Type") {
			t.Errorf("got %d %s, then %d %s %v", first.Code, first.Body, again.Code, again.Body, again.Header())
		}
		if w := r.do("root", "POST", invite, "{}"); w.Body.String() == first.Body.String() {
			t.Error("without a key it was not carried out again")
		}
	})
	run("what is kept is sealed", func(t *testing.T, r *rig) {
		var out map[string]any
		if json.Unmarshal(first.Body.Bytes(), &out) != nil || len(base.keyed.sealed) == 0 {
			t.Fatal(first.Body)
		}
		for _, v := range out {
			if s, ok := v.(string); ok && len(s) > 8 && strings.Contains(string(base.keyed.sealed), s) {
				t.Errorf("%s is in the store", s)
			}
		}
	})
	run("refusals are kept, too", func(t *testing.T, r *rig) {
		role := func() *httptest.ResponseRecorder {
			return r.do("root", "PUT", "/users/tom/role", `{"role":"auditor"}`, "Idempotency-Key", "tom")
		}
		r.is(role(), 404, "not-found")
		tom := users.Account{Name: "tom", Password: "correct horse battery"}
		if _, err := r.users.Add(t.Context(), tom); err != nil {
			t.Fatal(err)
		}
		w := role()
		r.is(w, 404, "not-found")
		if replayed(w) != "true" {
			t.Error("it does not say that it repeats an earlier answer")
		}
	})
	run("another input, and another operation", func(t *testing.T, r *rig) {
		r.is(r.do("root", "POST", invite, `{"role":"auditor"}`, "Idempotency-Key", "a"), 422, "key-reused")
		r.is(r.do("root", "POST", "/users/tom/invitation", "{}", "Idempotency-Key", "a"), 422, "key-reused")
		r.is(r.do("root", "POST", "/users/eve/recovery", "{}", "Idempotency-Key", "a"), 422, "key-reused")
		r.is(r.do("root", "POST", invite, "{}", "Idempotency-Key", "a", "If-Match", "*"), 422, "key-reused")
	})
	run("a key is its caller's", func(t *testing.T, r *rig) {
		for _, token := range []string{"second", "sue", "elsewhere"} {
			if w := r.do(token, "POST", invite, "{}", "Idempotency-Key", "a"); w.Code != 200 || replayed(w) != "" {
				t.Errorf("%s: got %d %s", token, w.Code, w.Body)
			}
		}
	})
	run("an answer is for one who may still do it", func(t *testing.T, r *rig) {
		r.is(r.do("second", "POST", "/keys/rotate", "{}", "Idempotency-Key", "k"), 200, "")
		if err := r.users.SetRole(t.Context(), "second", admin.Support); err != nil {
			t.Fatal(err)
		}
		r.is(r.do("second", "POST", "/keys/rotate", "{}", "Idempotency-Key", "k"), 403, "forbidden")
	})
	run("what was refused for a reason that passes may be tried again", func(t *testing.T, r *rig) {
		role := func() *httptest.ResponseRecorder {
			return r.do("sue", "PUT", "/users/second/mail", `{"mail":"s@example.com"}`, "Idempotency-Key", "m")
		}
		r.is(role(), 403, "forbidden")
		if err := r.users.SetRole(t.Context(), "second", ""); err != nil {
			t.Fatal(err)
		}
		r.is(role(), 200, "")
	})
	run("while the first one runs", func(t *testing.T, r *rig) {
		arrived, done := make(chan struct{}), make(chan struct{})
		base.keyed.ended = func() error { close(arrived); <-done; return errors.New("the store is gone") }
		answered := make(chan int)
		go func() { answered <- r.do("root", "POST", invite, "{}", "Idempotency-Key", "run").Code }()
		<-arrived
		w := r.do("root", "POST", invite, "{}", "Idempotency-Key", "run")
		r.is(w, 409, "running")
		if w.Header().Get("Retry-After") != "1" {
			t.Errorf("Retry-After: got %q", w.Header().Get("Retry-After"))
		}
		close(done)
		if got := <-answered; got != 200 {
			t.Errorf("whose answer could not be kept: got %d", got)
		}
		base.keyed.ended = nil
	})
	run("what ended without an answer is not carried out again", func(t *testing.T, r *rig) {
		base.now = base.now.Add(2 * time.Minute)
		r.is(r.do("root", "POST", invite, "{}", "Idempotency-Key", "run"), 409, "outcome-unknown")
	})
	run("keys that cannot be used", func(t *testing.T, r *rig) {
		for _, key := range []string{"", "a b", "é", "\x7f", strings.Repeat("x", 256)} {
			r.is(r.do("root", "POST", invite, "{}", "Idempotency-Key", key), 400, "invalid")
		}
		r.is(r.do("root", "GET", "/users", "", "Idempotency-Key", "a"), 200, "")
	})
	run("a key is free after a day", func(t *testing.T, r *rig) {
		base.now = base.now.Add(24*time.Hour - 3*time.Minute)
		for _, token := range []string{"root", "sue"} {
			var claims map[string]any
			_ = json.Unmarshal(r.tokens[token].Claims, &claims)
			claims["auth_time"] = base.now.Unix()
			r.tokens[token].Claims, _ = json.Marshal(claims)
		}
		if w := r.do("root", "POST", invite, "{}", "Idempotency-Key", "a"); replayed(w) != "true" {
			t.Errorf("before: got %d %s", w.Code, w.Body)
		}
		base.now = base.now.Add(time.Minute)
		w := r.do("root", "POST", invite, "{}", "Idempotency-Key", "a")
		if w.Code != 200 || replayed(w) != "" || w.Body.String() == first.Body.String() {
			t.Errorf("after: got %d %s", w.Code, w.Body)
		}
	})
}

// TestOnceAfterRotation checks that a stored response outlives a rotation of the master key while
// the old key is available (OB-10). Afterwards it is reported as unreadable, not as a key reused
// for another request.
func TestOnceAfterRotation(t *testing.T) {
	const invite = "/users/eve/invitation"
	old, present := make([]byte, 32), bytes.Repeat([]byte{1}, 32)
	before := newRig(t)
	before.person("root", admin.Administrator, "admin:write", time.Minute)
	first := before.do("root", "POST", invite, "{}", "Idempotency-Key", "a")
	during, after := newRigUnder(t, before.store, present, old), newRigUnder(t, before.store, present)
	during.tokens, after.tokens = before.tokens, before.tokens
	again := during.do("root", "POST", invite, "{}", "Idempotency-Key", "a")
	if first.Code != 200 || again.Body.String() != first.Body.String() {
		t.Errorf("OB-10: got %d %s, then %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	during.is(during.do("root", "POST", invite, `{"role":"auditor"}`, "Idempotency-Key", "a"), 422, "key-reused")
	after.is(after.do("root", "POST", invite, "{}", "Idempotency-Key", "a"), 409, "answer-unreadable")
	after.is(after.do("root", "POST", invite, "{}", "Idempotency-Key", "b"), 200, "")
}

// TestOnceAtOnce checks that only one of several simultaneous requests with the same key runs
// (OB-10).
func TestOnceAtOnce(t *testing.T) {
	r := newRig(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	var all sync.WaitGroup
	answers := make(chan *httptest.ResponseRecorder, 32)
	for range 32 {
		all.Go(func() { answers <- r.do("root", "POST", "/keys/rotate", "{}", "Idempotency-Key", "k") })
	}
	all.Wait()
	close(answers)
	carriedOut := 0
	for w := range answers {
		switch {
		case w.Code == 200 && w.Header().Get("Idempotency-Replayed") == "":
			carriedOut++
		case w.Code != 200:
			r.is(w, 409, "running")
		}
	}
	if carriedOut != 1 {
		t.Errorf("OB-10: carried out %d times, want once", carriedOut)
	}
}

// TestClientRetries checks that a change of the client is made once, even if the connection breaks
// (OB-10).
func TestClientRetries(t *testing.T) {
	r := newRig(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	var mu sync.Mutex // guards keys: one request uses two connections
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		keys = append(keys, q.Header.Get("Idempotency-Key"))
		second := len(keys)%2 == 0
		mu.Unlock()
		if second {
			r.mux.ServeHTTP(w, q)
			return
		}
		r.mux.ServeHTTP(httptest.NewRecorder(), q)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	by := &api.Client{Root: server.URL + "/api/v1", HTTP: &http.Client{Transport: presenting("root")}}
	u, err := admin.UserAdd.Do(t.Context(), by, admin.NewUser{Name: "new", Password: "correct horse battery"})
	if err != nil || u.Name != "new" || len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("OB-10: got %+v, %v; keys %q", u, err, keys)
	}
	if _, err := admin.UserDisable.Do(t.Context(), by, admin.UserName{Name: "new"}); err != nil {
		t.Error(err)
	}
	if len(keys) != 4 || keys[2] == keys[0] {
		t.Errorf("OB-10: another change has the key of the first: %q", keys)
	}
}
