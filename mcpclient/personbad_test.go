package mcpclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// expired returns the tokens of a sign-in with an access token that is about to expire.
func expired(k signin.Kept) oauth.TokenResponse {
	return oauth.TokenResponse{AccessToken: k.Access, TokenType: k.TokenType, ExpiresIn: 1}
}

// failure fails the test unless err is an *Error with a text and an advice.
func failure(t *testing.T, what string, err error, why, advice string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Why, why) || !strings.Contains(e.Advice, advice) || e.Advice == "" {
		t.Errorf("AU-01: %s: got %v %+v, want %q and the advice %q", what, err, e, why, advice)
	}
}

// TestPersonBadCallback: AU-01. A callback that is not the answer to the request ends the sign-in.
func TestPersonBadCallback(t *testing.T) {
	for name, tt := range map[string]struct {
		back func(url.Values)
		why  string
	}{
		"a foreign state": {func(v url.Values) { v.Set("state", "x") }, "state differs"},
		"a foreign iss":   {func(v url.Values) { v.Set("iss", "https://evil.example") }, "another issuer"},
		"no iss":          {func(v url.Values) { v.Del("iss") }, "no iss"},
		"a denial":        {func(v url.Values) { v.Set("error", "access_denied") }, "access_denied"},
	} {
		f := newFake(t)
		f.back = tt.back
		_, err := f.person(MemoryStore(), nil).Token(t.Context())
		failure(t, name, err, tt.why, "")
	}
	t.Run("a second callback", func(t *testing.T) {
		f := newFake(t)
		f.calls(f.person(MemoryStore(), func(c *PersonConfig) {
			c.OpenBrowser = func(_ context.Context, raw string) error {
				at := f.approve(raw)
				go f.visit(at)
				go f.visit(at)
				return nil
			}
		}), 1)
	})
	t.Run("a browser that never returns", func(t *testing.T) {
		f := newFake(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := f.person(MemoryStore(), func(c *PersonConfig) {
			c.OpenBrowser = func(context.Context, string) error { return nil }
			c.Ask = func(context.Context, Prompt) { cancel() }
		}).Token(ctx)
		failure(t, "a browser that never returns", err, "did not come back", "Open the URL again")
	})
}

// TestPersonStoreExposed: AU-01, CL-27. A file that other users may have read or written is not used.
func TestPersonStoreExposed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	f, dir := newFake(t), t.TempDir()
	f.calls(f.person(FileStore(dir), nil), 1)
	file := filepath.Join(dir, signin.KeyOf(f.URL+"/mcp", "")+".json")
	if at, err := os.Stat(file); err != nil || at.Mode().Perm() != 0o600 {
		t.Fatalf("CL-27: %v, %v", at, err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err := f.person(FileStore(dir), nil).Token(t.Context())
	failure(t, "open modes", err, "has mode 0640", "delete the file")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 12345, -1); err != nil {
			t.Fatal(err)
		}
		_, err := f.person(FileStore(dir), nil).Token(t.Context())
		failure(t, "another user's file", err, "belongs to the user with id 12345", "delete the file")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.calls(f.person(FileStore(dir), nil), 2) // a damaged file is like none
	_, err = f.person(FileStore(filepath.Join(file, "below")), nil).Token(t.Context())
	failure(t, "no directory", err, "cannot be kept", "must be able to write")
}

// TestPersonLockHeld: AU-01. A process that waits for another one ends with its context.
func TestPersonLockHeld(t *testing.T) {
	f := newFake(t)
	for name, store := range map[string]Store{"file": FileStore(t.TempDir()), "memory": MemoryStore()} {
		unlock, err := store.Lock(t.Context(), signin.KeyOf(f.URL+"/mcp", ""))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.person(store, nil).Token(ctx); err == nil || !strings.Contains(err.Error(), "context canceled") {
			t.Errorf("AU-01: %s: got %v", name, err)
		}
		unlock()
		f.mu.Lock()
		f.authorized = nil
		f.mu.Unlock()
		f.calls(f.person(store, nil), 1)
	}
}

// TestPersonRevoked: AU-01. When the grant was revoked, the user signs in again; a program without
// a user says so.
func TestPersonRevoked(t *testing.T) {
	f, store := newFake(t), MemoryStore()
	p := f.person(store, nil)
	f.calls(p, 1)
	f.grants[0].ended = true
	if _, err := f.call(f.person(store, func(c *PersonConfig) { c.Unattended = true })); !errors.Is(err, ErrSignIn) {
		t.Errorf("AU-01: got %v, want %v", err, ErrSignIn)
	}
	f.calls(p, 2)
	if f.registrations != 1 {
		t.Errorf("AU-01: %d registrations", f.registrations)
	}
}

// TestPersonMoved: AU-01 CL-15. When the MCP server has another authorization server, the user signs
// in there, and nothing of the old one is sent to it.
func TestPersonMoved(t *testing.T) {
	f, store := newFake(t), MemoryStore()
	first := f.URL
	f.calls(f.person(store, nil), 1)
	f.issuer = f.URL + "/two"
	f.expire()
	f.grants[0].ended = true
	pinned := func(c *PersonConfig) { c.AuthorizationServer = first }
	_, err := f.call(f.person(store, pinned))
	failure(t, "a pinned issuer", err, "names "+f.issuer, "Is the MCP server the right one?")
	p := f.person(store, nil)
	f.calls(p, 2)
	if a := p.current(); a.Issuer != f.issuer || a.ClientID != "client-2" {
		t.Errorf("CL-15: got %+v", a.Kept)
	}
}

// TestPersonClocks: AU-01. A refused new token, or a clock that is wrong, ends in an error that names
// the difference. An expiry that the clock hides is noticed by the server's refusal.
func TestPersonClocks(t *testing.T) {
	f := newFake(t)
	p := f.person(MemoryStore(), nil)
	f.calls(p, 1)
	f.expire()
	f.calls(p, 1) // this computer takes the token for valid
	p.now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	f.calls(p, 1)
	p.now = time.Now
	f.mute, f.date = true, -2*time.Minute
	_, err := f.call(p)
	failure(t, "clocks", err, "refuses a new token", "ahead of the server")
	if len(f.authorized) != 1 {
		t.Errorf("AU-01: the user signed in %d times", len(f.authorized))
	}
	f.date = 0
	_, err = f.call(p)
	failure(t, "no difference seen", err, "refuses a new token", "Do the clocks")
	if !strings.Contains(signin.ClockAdvice(http.Header{"Date": {
		time.Now().Add(2 * time.Minute).UTC().Format(http.TimeFormat),
	}}, time.Now()), "behind the server") {
		t.Error("AU-01: a clock that is behind")
	}
}

// TestPersonInsecure: AU-01. An https MCP server cannot send the user to plain http.
func TestPersonInsecure(t *testing.T) {
	p, err := NewPerson(PersonConfig{Server: "https://mcp.example.com/mcp", ClientName: "x", Store: MemoryStore()})
	if err != nil {
		t.Fatal(err)
	}
	failure(t, "plain http", p.secure("http://127.0.0.1:9000/token"), "is not an https URL", "over https")
}
