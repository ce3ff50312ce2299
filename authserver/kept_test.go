package authserver

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// required returns a server with a required audit log, and a switch that makes the store refuse
// entries.
func required(t *testing.T) (r *rig, away *atomic.Bool) {
	t.Helper()
	away = new(atomic.Bool)
	r = newRig(t, func(c *Config) {
		store := storagetest.NewFailing(c.Store.(storage.Store))
		store.Surround(func(verb string, do func() error) error {
			if verb == "AppendAudit" && away.Load() {
				return storagetest.ErrInjected
			}
			return do()
		})
		w := auditlog.NewWriter(auditlog.Options{
			Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			MAC: auditlog.MACOf(store, [][]byte{bytes.Repeat([]byte("k"), 32)}, "auth.example.com/audit", time.Now),
		})
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		t.Cleanup(func() {
			stop()
			<-done
		})
		c.Audit, c.AuditRequired = c.Audit.Into(w), true
	})
	return r, away
}

func (r *rig) entries(t *testing.T, event string) int {
	t.Helper()
	found, err := r.store.AuditEntries(t.Context(), storage.AuditQuery{Event: event, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestAuditRequired checks that with audit.required each response follows its log entries (OB-06).
// If they cannot be written, no token, code or session is issued.
func TestAuditRequired(t *testing.T) {
	r, away := required(t)
	p := r.person()
	t.Run("OB-06 an answer comes after its entries", func(t *testing.T) {
		out := p.signIn()
		for _, event := range []string{audit.LoginSucceeded, audit.ConsentApproved, audit.TokenIssued} {
			if n := r.entries(t, event); n != 1 {
				t.Errorf("there are %d entries of %s", n, event)
			}
		}
		if status, _ := p.token(refreshForm(out["refresh_token"])); status != http.StatusOK ||
			r.entries(t, audit.TokenRefreshed) != 1 {
			t.Errorf("refresh: got %d", status)
		}
	})
	code := p.approve(authorizeQuery("state", "st-2")).Get("code")
	fresh := r.person()
	login := fresh.get("/authorize?" + authorizeQuery().Encode())
	form := url.Values{"step": {login.step(t)}, "username": {"alice"}, "password": {"correct horse battery"}}

	away.Store(true)
	t.Run("OB-06 a sign-in that cannot be written begins no session", func(t *testing.T) {
		pg := fresh.post("/login", form, "Accept", "text/html")
		if pg.status != http.StatusServiceUnavailable || pg.header.Get("Location") != "" ||
			len(pg.header["Set-Cookie"]) != 0 || pg.header.Get("Retry-After") == "" ||
			!strings.Contains(pg.body, "cannot reach its storage") {
			t.Errorf("got %d %v %.300s", pg.status, pg.header, pg.body)
		}
		if !strings.Contains(r.log.String(), "audit.required") {
			t.Error("the log does not say why")
		}
	})
	t.Run("OB-06 while it cannot be written a code is not looked at", func(t *testing.T) {
		status, out := p.token(codeForm(code))
		if status != http.StatusServiceUnavailable || out["error"] != "temporarily_unavailable" {
			t.Errorf("got %d %v", status, out)
		}
		if pg := p.get("/authorize?" + authorizeQuery("state", "st-3").Encode()); pg.status != 503 {
			t.Errorf("authorize: got %d", pg.status)
		}
	})
	t.Run("OB-06 what records nothing is answered, and the server is not ready", func(t *testing.T) {
		for path, want := range map[string]int{
			"/jwks.json": 200, "/.well-known/oauth-authorization-server": 200, "/readyz": 503,
		} {
			if pg := p.get(path); pg.status != want {
				t.Errorf("%s: got %d, want %d", path, pg.status, want)
			}
		}
	})
	away.Store(false)
	wait.Success(t, "the audit log is ready", r.cfg.Audit.Ready)
	t.Run("OB-06 afterwards the same code gives tokens, and what was done in between is in the log", func(t *testing.T) {
		if status, out := p.token(codeForm(code)); status != http.StatusOK {
			t.Errorf("got %d %v", status, out)
		}
		if n := r.entries(t, audit.LoginSucceeded); n != 2 {
			t.Errorf("there are %d sign-ins", n)
		}
	})
}
