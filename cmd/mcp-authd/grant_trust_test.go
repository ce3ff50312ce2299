package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestGrantsOfTrustEntries checks that commands name the trusted issuer that a grant came from
// (AS-232).
func TestGrantsOfTrustEntries(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	command := func(args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		code := run(t.Context(), append(args, "--data", dir), std{strings.NewReader(""), &out, &errs, nil})
		if code != 0 {
			t.Fatalf("%v: got %d %s", args, code, errs.String())
		}
		return out.String()
	}
	command("migrate", "up")
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "mcp-authd.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.GrantAssertion(t.Context(), storage.AssertionGrant{
		IssuedAt: now, SpentUntil: now.Add(time.Minute), Configured: true,
		Grant: storage.Grant{
			ID: "grt_1", ClientID: "workload:ci:build", Scopes: oauth.Scopes{"mcp"}, TrustID: "ci",
			Resource: "https://mcp.example.com/mcp", CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"grant list", "given by ci"},
		{"grant list --json", `"trust": "ci"`},
		{"grant show grt_1", "rests on      given by ci\n"},
		{"grant show grt_1 --json", `"trust": "ci"`},
		{"grant revoke grt_1", "revoked grt_1 (workload:ci:build, https://mcp.example.com/mcp)\n"},
	} {
		if got := command(strings.Fields(c.args)...); !strings.Contains(got, c.want) || strings.Contains(got, "()") {
			t.Errorf("%s: no %q in %s", c.args, c.want, got)
		}
	}
}
