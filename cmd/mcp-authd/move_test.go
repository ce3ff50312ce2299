package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// installed returns an opened installation with one account.
func installed(t *testing.T) (a *app, environ []string) {
	t.Helper()
	environ = []string{"HOME=" + t.TempDir(), "MCP_AUTHD_DATA_DIR=" + filepath.Join(t.TempDir(), "data")}
	if code, _, errs := runs(t, environ, "user", "add", "alice", "--password-stdin"); code != exitOK {
		t.Fatalf("user add: got %d %s", code, errs)
	}
	var out, errs strings.Builder
	a, err := settings{}.open(t.Context(), std{strings.NewReader(""), &out, &errs, environ})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, environ
}

// TestStoppedMove checks that a move ended by a signal reports that it did nothing, rather than
// that the database is unusable (DL-02).
func TestStoppedMove(t *testing.T) {
	_, environ := installed(t)
	dir := t.TempDir()
	whole, copied := filepath.Join(dir, "authd.export"), filepath.Join(dir, "copy.db")
	for _, args := range [][]string{{"export", whole}, {"backup", copied}} {
		if code, _, errs := runs(t, environ, args...); code != exitOK {
			t.Fatalf("%v: got %d %s", args, code, errs)
		}
	}
	data := filepath.Join(dir, "data")
	if err := os.CopyFS(data, os.DirFS(strings.TrimPrefix(environ[1], "MCP_AUTHD_DATA_DIR="))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(data, "mcp-authd.db")); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for want, args := range map[string][]string{
		"nothing was imported: it was stopped": {"import", whole, "--data", data},
		"nothing was copied: it was stopped":   {"backup", filepath.Join(dir, "other.db")},
		"nothing was restored: it was stopped": {"restore", copied, "--yes"},
	} {
		var out, errs strings.Builder
		code := run(stopped, args, std{strings.NewReader(""), &out, &errs, environ})
		if code != exitFailure || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: got %d %s, want %q", args, code, errs.String(), want)
		}
	}
}

// TestLinksLeadToTheLastIssuer checks that printed links use the issuer of the last start if none
// is configured, as in a directory of protect (DL-05). A configured issuer takes precedence.
func TestLinksLeadToTheLastIssuer(t *testing.T) {
	a, environ := installed(t)
	const issuer = "https://mcp.example.com"
	if _, err := a.Store.Remember(t.Context(), "issuer", []byte(issuer)); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runs(t, environ, "user", "invite", "bob"); code != exitOK ||
		!strings.Contains(out, issuer+"/link/") {
		t.Errorf("got %d %q %s, want a link to %s", code, out, errs, issuer)
	}
	named := append(environ, "MCP_AUTHD_ISSUER=https://auth.example.com")
	if code, out, errs := runs(t, named, "user", "invite", "carol"); code != exitOK ||
		!strings.Contains(out, "https://auth.example.com/link/") {
		t.Errorf("got %d %q %s, want a link to the issuer that is configured", code, out, errs)
	}
}
