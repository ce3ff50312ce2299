package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestTrustLinks checks that a link is logged, and that its removal revokes access that depends on
// assertions (AS-192).
func TestTrustLinks(t *testing.T) {
	dir, s := grantedInstallation(t, 1, "hosted")
	trust := func(args ...string) {
		t.Helper()
		command(t, t.Context(), nil, exitOK, append(append([]string{"trust"}, args...), "--data", dir)...)
	}
	keys := filepath.Join(dir, "keys.json")
	if err := os.WriteFile(keys, []byte(`{"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	trust("add", "company", "--kind", "enterprise", "--issuer", "https://idp.example", "--jwks-file", keys)
	trust("link", "company", "alice", "u1")
	now := time.Now()
	out, err := s.GrantAssertion(t.Context(), storage.AssertionGrant{
		SpendID: "j1", SpentUntil: now.Add(time.Minute), IssuedAt: now,
		Person: &storage.AssertedPerson{Issuer: "https://idp.example", Subject: "u1"},
		Grant: storage.Grant{
			ID: "grt_asserted", ClientID: "hosted", Scopes: oauth.Scopes{"mcp"}, AuthTime: now, CreatedAt: now,
			Resource: "https://mcp.example.com/mcp", ExpiresAt: now.Add(time.Hour), TrustID: "company",
		},
	})
	if err != nil || out.User.Name != "alice" {
		t.Fatalf("got %s, %v, want the person who was linked", out.User.Name, err)
	}
	trust("unlink", "company", "alice", "u1")
	if live, marked := liveOf(t, s, "hosted"); live != 1 || marked != 1 {
		t.Errorf("%d grants are live and %d marked, want that of the person and that of the assertion", live, marked)
	}
	events, err := s.TakeEvents(t.Context(), 100, now)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, e := range events {
		told[e.Name] = string(e.Fields)
	}
	for _, name := range []string{audit.TrustLinked, audit.TrustUnlinked} {
		for _, want := range []string{`"trust":"company"`, `"by":"operator"`, `"user_name":"alice"`} {
			if !strings.Contains(told[name], want) {
				t.Errorf("%s has no %s: %s", name, want, told[name])
			}
		}
	}
}

// TestStartWithoutAnEntry checks that a start without a previously configured trusted issuer
// revokes its access, and logs it (AS-232).
func TestStartWithoutAnEntry(t *testing.T) {
	_, s := grantedInstallation(t, 0)
	var log bytes.Buffer
	recorder := audit.New(slog.New(slog.NewTextHandler(&log, nil)))
	a := &app{Installation: &installation.Installation{
		Store: s, Config: &config.Loaded{Config: &config.Config{}}, Audit: recorder,
	}}
	start := func(entries ...config.Trust) {
		t.Helper()
		a.Config.Trust = entries
		if err := a.endRemovedTrust(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	start(config.Trust{ID: "company", Preset: "okta", Parameters: map[string]string{"domain": "company.okta.com"}})
	start()
	cuts, err := s.PendingCuts(t.Context(), time.Now())
	if err != nil || len(cuts) != 1 || cuts[0].Trust != "company" {
		t.Errorf("got %v, %v, want one cut", cuts, err)
	}
	if got := log.String(); strings.Count(got, "event=trust.changed") != 1 ||
		!strings.Contains(got, `trust=company what="removed from the configuration"`) {
		t.Errorf("got %s", got)
	}
}
