package assembly

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestClearance checks a tool call behind the gateway that its user must approve. It covers the
// configuration, the authorization server with its store, and the MCP server.
func TestClearance(t *testing.T) {
	s := newSite(t)
	plain := agent{inProcess{s.Handler()}, false}
	s.signIn(t, plain, plain)
	token, store := s.secrets[4], s.parts.Store
	call := func(arguments string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:8414/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":`+arguments+`}}`))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w
	}
	reached := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.asked)
	}
	// wait returns the ID of the approval that a call waits for.
	wait := func(arguments string) string {
		t.Helper()
		w := call(arguments)
		_, id, found := strings.Cut(w.Header().Get("Www-Authenticate"), "clearance:")
		id, _, _ = strings.Cut(id, `"`)
		link := "Open http://localhost:8414/clearance/" + id + " to do so, then call again."
		if w.Code != http.StatusForbidden || !found || !strings.Contains(w.Body.String(), link) {
			t.Fatalf("RS-217 %s: got %d %v %s", arguments, w.Code, w.Header(), w.Body)
		}
		return id
	}
	browser := storage.Hash(sha256.Sum256([]byte("a browser")))
	decide := func(id string, give bool) {
		t.Helper()
		now := time.Now()
		c, err := store.Clearance(t.Context(), id, now)
		if err == nil {
			err = store.PutSession(t.Context(), storage.Session{
				Hash: browser, UserID: c.UserID, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
			}, storage.SignInStart{})
			browser[0]++
		}
		if err != nil {
			t.Fatal(err)
		}
		browser := browser
		browser[0]--
		_, err = store.DecideClearance(t.Context(), storage.ClearanceDecision{
			ID: id, Session: browser, Give: give, Now: now,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := reached()
	if w := call(`{"amount":100}`); w.Code != http.StatusOK || reached() != before+1 {
		t.Fatalf("a small amount: got %d %s", w.Code, w.Body)
	}
	before = reached()
	first := wait(`{"amount":101,"to":"bob"}`)
	if again := wait(`{"to":"bob","amount":101}`); again != first {
		t.Errorf("RS-217: the same call waits for %s, and for %s", first, again)
	}
	decide(first, true)
	for _, other := range []string{
		`{"amount":102,"to":"bob"}`, `{"amount":101.0,"to":"bob"}`, `{"amount":101,"to":"Bob"}`, `{"amount":101}`,
		`{"amount":101,"to":"b\u00f6b"}`, `{"amount":101,"to":"bo\u0308b"}`,
	} {
		if id := wait(other); id == first {
			t.Errorf("RS-217 %s: waits for the clearance of another call", other)
		}
	}
	if reached() != before {
		t.Fatalf("RS-217: %d calls reached the MCP server", reached()-before)
	}
	var passed atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if call(`{"amount":101,"to":"bob"}`).Code == http.StatusOK {
				passed.Add(1)
			}
		})
	}
	all.Wait()
	if n := reached() - before; passed.Load() != 1 || n != 1 {
		t.Errorf("RS-217: of 32 retries %d passed, and %d reached the MCP server", passed.Load(), n)
	}
	second := wait(`{"amount":101,"to":"bob"}`)
	if second == first {
		t.Error("RS-217: one word was asked for twice")
	}
	decide(second, false)
	w := call(`{"amount":101,"to":"bob"}`)
	if w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "http") ||
		!strings.Contains(w.Body.String(), "denied by the person") {
		t.Errorf("RS-217: after a no: got %d %s", w.Code, w.Body)
	}
	long, _ := json.Marshal(map[string]any{"amount": 500, "text": strings.Repeat("x", 9000)})
	if w := call(string(long)); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "too long") {
		t.Errorf("RS-217: arguments that nobody reads: got %d %s", w.Code, w.Body)
	}
	// An approval ends with its grant.
	third := wait(`{"amount":200}`)
	decide(third, true)
	c, err := store.Clearance(t.Context(), third, time.Now())
	if err == nil {
		err = store.RevokeGrant(t.Context(), c.GrantID, storage.ByConsent, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	before = reached()
	if w := call(`{"amount":200}`); w.Code != http.StatusUnauthorized || reached() != before {
		t.Errorf("RS-217: after a revocation: got %d %s", w.Code, fmt.Sprint(w.Body))
	}
}
