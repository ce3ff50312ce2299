package mcpclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/signin"
)

// TestPersonStays: AU-01. A user signs in once, over restarts, refreshes and step-ups, with one
// registration, until the sign-out.
func TestPersonStays(t *testing.T) {
	f, dir := newFake(t), filepath.Join(t.TempDir(), "notes")
	p := f.person(FileStore(dir), nil)
	f.calls(p, 1)
	p = f.person(FileStore(dir), nil) // a new process
	f.calls(p, 1)
	f.expire()
	f.calls(p, 1)
	f.needs = `error="insufficient_scope", scope="mcp write"`
	f.satisfied = func(g grant) bool { return strings.Contains(g.request.Get("scope"), "write") }
	f.calls(p, 2)
	f.needs = `error="insufficient_scope", scope="delete"`
	f.satisfied = func(g grant) bool { return g.request.Get("scope") == "mcp write delete" }
	f.calls(f.person(FileStore(dir), nil), 3)
	f.calls(p, 3) // the first process uses the new token
	if f.registrations != 1 || len(f.revoked) != 0 {
		t.Errorf("AU-01: %d registrations, revoked %v", f.registrations, f.revoked)
	}
	if was, err := p.SignOut(t.Context()); !was || err != nil || len(f.revoked) != 1 {
		t.Errorf("AU-01: sign-out: %v, %v, revoked %v", was, err, f.revoked)
	}
	if was, err := p.SignOut(t.Context()); was || err != nil {
		t.Errorf("AU-01: sign-out again: %v, %v", was, err)
	}
	f.needs = ""
	f.calls(p, 4)
}

// TestPersonAccounts: AU-01. Accounts and servers share nothing.
func TestPersonAccounts(t *testing.T) {
	f, store := newFake(t), MemoryStore()
	f.calls(f.person(store, nil), 1)
	work := func(c *PersonConfig) { c.Account = "work" }
	f.calls(f.person(store, work), 2)
	f.calls(f.person(store, work), 2)
	if _, err := f.person(store, work).SignOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.calls(f.person(store, nil), 2)
}

// TestPersonRefreshesOnce: AU-01. Goroutines and processes that find an expired token refresh it
// once: the server ends a grant whose refresh token comes twice.
func TestPersonRefreshesOnce(t *testing.T) {
	if server := os.Getenv("MCPCLIENT_TEST_SERVER"); server != "" {
		p, err := NewPerson(PersonConfig{
			Server: server, ClientName: "Notes", Store: FileStore(os.Getenv("MCPCLIENT_TEST_DIR")), Unattended: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := p.Token(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return
	}
	f, dir := newFake(t), t.TempDir()
	store := FileStore(dir)
	p := f.person(store, nil)
	f.calls(p, 1)
	key := signin.KeyOf(f.URL+"/mcp", "")
	data, err := store.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	kept := signin.ReadKept(data)
	kept.ExpiresAt = time.Now()
	if _, err := p.keep(t.Context(), access{Kept: kept}, expired(kept)); err != nil {
		t.Fatal(err)
	}
	var processes []*exec.Cmd
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPersonRefreshesOnce$")
		cmd.Env = append(os.Environ(), "MCPCLIENT_TEST_SERVER="+f.URL+"/mcp", "MCPCLIENT_TEST_DIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	for _, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	f.mu.Lock() // the requests were by other processes
	defer f.mu.Unlock()
	if f.refreshes != 1 {
		t.Errorf("AU-01: refreshed %d times, want 1", f.refreshes)
	}
}

// TestPersonProves: OB-10. A call that requires a stronger or more recent authentication makes the
// user sign in again, once (RFC 9470).
func TestPersonProves(t *testing.T) {
	f := newFake(t)
	p := f.person(MemoryStore(), nil)
	f.calls(p, 1)
	f.needs = `error="insufficient_user_authentication", acr_values="x  y", max_age="600"`
	f.satisfied = func(g grant) bool { return g.request.Get("max_age") == "600" }
	f.calls(p, 2)
	if got := f.authorized[1].Get("acr_values"); got != "x y" {
		t.Errorf("OB-10: acr_values %q", got)
	}
	f.calls(p, 2)
	f.satisfied = func(grant) bool { return false }
	if status, err := f.call(p); status != 401 || err != nil || len(f.authorized) != 3 {
		t.Errorf("OB-10: a server that is never satisfied: %d, %v, %d sign-ins", status, err, len(f.authorized))
	}
}

// TestPersonApproves: AU-01. A call that needs an approval is shown to the user at sign-in. If
// another person must decide, it waits.
func TestPersonApproves(t *testing.T) {
	f := newFake(t)
	waits, said := 0, ""
	p := f.person(MemoryStore(), func(c *PersonConfig) {
		c.Ask = func(_ context.Context, p Prompt) {
			if p.Waiting != "" {
				said = p.Waiting
			}
		}
	})
	f.calls(p, 1)
	f.needs = `error="insufficient_scope", scope="mcp clearance:c1", error_description="Bob must approve it."`
	f.satisfied = func(g grant) bool {
		if strings.Contains(g.request.Get("scope"), "clearance:c1") {
			waits++
		}
		return waits == 3
	}
	f.calls(p, 2)
	if said != "Bob must approve it." || waits != 3 {
		t.Errorf("AU-01: said %q, asked %d times", said, waits)
	}
	if kept := p.current(); kept.Scopes.String() != "mcp" {
		t.Errorf("AU-01: the approval is kept as scope %q", kept.Scopes)
	}
}

// TestPersonWithoutBrowser: AU-01. Without a browser the user approves on another device, or pastes
// the URL at which a browser on another computer ended.
func TestPersonWithoutBrowser(t *testing.T) {
	t.Run("device", func(t *testing.T) {
		f := newFake(t)
		var asked Prompt
		p := f.person(MemoryStore(), func(c *PersonConfig) {
			c.Device, c.Ask = true, func(_ context.Context, p Prompt) { asked = p }
		})
		f.calls(p, 1)
		if asked.Device.Code != "BCDF-GHJK" || asked.URL != "" ||
			!strings.Contains(asked.String(), "type the code BCDF-GHJK") {
			t.Errorf("got %+v", asked)
		}
	})
	t.Run("no desktop", func(t *testing.T) {
		for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} {
			t.Setenv(name, "")
		}
		f := newFake(t)
		f.calls(f.person(MemoryStore(), func(c *PersonConfig) { c.OpenBrowser = nil }), 1)
		if f.codes["device"] == nil && signin.Desktop() != nil {
			t.Error("the user was not asked for a device")
		}
	})
	t.Run("paste", func(t *testing.T) {
		f := newFake(t)
		urls := make(chan string, 1)
		n := 0
		p := f.person(MemoryStore(), func(c *PersonConfig) {
			c.OpenBrowser = func(context.Context, string) error { return errors.New("no browser") }
			c.Ask = func(_ context.Context, p Prompt) { urls <- f.approve(p.URL) }
			c.Paste = func(context.Context) (string, error) {
				if n++; n == 1 {
					return "hello", nil // not a URL: the user is asked again
				}
				return <-urls + "\n", nil
			}
		})
		f.calls(p, 1)
	})
}

// TestPersonRedirect: AU-01. The listener follows the redirect URI of the client.
func TestPersonRedirect(t *testing.T) {
	for _, redirect := range []string{"http://localhost/back", "http://[::1]/callback", "http://127.0.0.1/"} {
		f := newFake(t)
		back, err := signin.ListenAt(redirect)
		if err != nil {
			t.Logf("%s: %v", redirect, err) // a computer without IPv6
			continue
		}
		back.Close()
		f.calls(f.person(MemoryStore(), func(c *PersonConfig) { c.ClientID, c.Redirect = "ours", redirect }), 1)
		want, _ := url.Parse(redirect)
		got, err := url.Parse(f.authorized[0].Get("redirect_uri"))
		if err != nil || got.Hostname() != want.Hostname() || got.Path != want.Path || got.Port() == "" ||
			f.registrations != 0 {
			t.Errorf("AU-01: %s: got %v, %v, %d registrations", redirect, got, err, f.registrations)
		}
	}
	f := newFake(t)
	p := f.person(MemoryStore(), func(c *PersonConfig) { c.ClientID, c.Redirect = "ours", "https://example.com/cb" })
	_, err := p.Token(t.Context())
	failure(t, "a redirect elsewhere", err, "is not an http URL of this computer", "http://127.0.0.1/callback")
}

// TestPersonDPoP: AU-01. Tokens are bound to one key, which a new process has as well.
func TestPersonDPoP(t *testing.T) {
	f, store := newFake(t), FileStore(t.TempDir())
	f.dpop = true
	f.calls(f.person(store, nil), 1) // because the MCP server requires it
	f.expire()
	f.calls(f.person(store, nil), 1)
	if len(f.grants) != 1 || f.grants[0].key == "" || f.refreshes != 1 {
		t.Errorf("AU-01: got %+v, %d refreshes", f.grants, f.refreshes)
	}
	token, err := f.person(store, func(c *PersonConfig) { c.DPoP = &DPoP{} }).Token(t.Context())
	if err != nil || token.TokenType != "DPoP" || len(f.authorized) != 1 {
		t.Errorf("AU-01: got %v, %v", token, err)
	}
}

// TestPersonTokenGoesNowhereElse: CL-26.
func TestPersonTokenGoesNowhereElse(t *testing.T) {
	f := newFake(t)
	p := f.person(MemoryStore(), nil)
	_, err := p.HTTPClient().Get("http://127.0.0.1:1/mcp")
	if err == nil || !strings.Contains(err.Error(), "and not for") {
		t.Errorf("CL-26: got %v", err)
	}
	if len(f.authorized) != 0 {
		t.Error("CL-26: the user was asked")
	}
}

func TestPersonConfig(t *testing.T) {
	for want, c := range map[string]PersonConfig{
		"Server must be": {Server: "http://example.com/mcp"},
		"a Store":        {Server: "https://example.com/mcp", ClientName: "x"},
		"a ClientName":   {Server: "https://example.com/mcp", Store: MemoryStore()},
	} {
		if _, err := NewPerson(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if p, err := NewPerson(PersonConfig{
		Server: "https://example.com/mcp", ClientName: "x", Store: MemoryStore(), Unattended: true,
	}); err != nil {
		t.Error(err)
	} else if _, err := p.TokenSource().Token(); !errors.Is(err, ErrSignIn) {
		t.Errorf("got %v, want %v", err, ErrSignIn)
	} else if p.HTTPClient().CheckRedirect(nil, nil) != http.ErrUseLastResponse {
		t.Error("CL-26: redirects are followed")
	}
}
