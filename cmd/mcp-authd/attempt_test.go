package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// TestWatchNamesPeople checks that the line of a refresh, which has only the user's ID, shows the
// name (OB-02).
func TestWatchNamesPeople(t *testing.T) {
	store, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	bob := storage.User{ID: "usr_1", Name: "bob", CreatedAt: time.Now()}
	if err := store.CreateUser(t.Context(), bob); err != nil {
		t.Fatal(err)
	}
	names := (&admin.Service{Store: store}).Names()
	for person, want := range map[string]string{"usr_1": ", bob)", "usr_gone": ", usr_gone)", "alice": ", alice)"} {
		n := attempt.News{Attempt: attempt.Attempt{ClientName: "Notes", Person: person}}
		if line := newsLine(withName(t.Context(), names, n)); !strings.HasSuffix(line, want) {
			t.Errorf("OB-02: %s: got %q, want %q at its end", person, line, want)
		}
	}
}

// scriptReferred implements referred URL VAR: it sets VAR to the reference that the page at the URL
// shows.
func scriptReferred(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(http.MethodGet, args[0], nil)
	ts.Check(err)
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	ts.Check(err)
	reference := resp.Header.Get("X-Request-Id")
	if reference == "" || !strings.Contains(string(page), reference) {
		ts.Fatalf("the page does not show the reference %q: %s", reference, page)
	}
	ts.Setenv(args[1], reference)
}

// scriptTurnedAway implements turnedaway URL TOKEN VAR: an MCP client calls the URL, with the token
// unless it is "". It must get 401 with a reference, which is stored in VAR.
func scriptTurnedAway(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(http.MethodPost, args[0], strings.NewReader(`{}`))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	if args[1] != "" {
		req.Header.Set("Authorization", "Bearer "+args[1])
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	reference := resp.Header.Get("X-Request-Id")
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	ts.Check(err)
	told := strings.Contains(string(body), "Reference: "+reference+".")
	if resp.StatusCode != http.StatusUnauthorized || reference == "" || !told {
		ts.Fatalf("got %s with %v", resp.Status, resp.Header)
	}
	ts.Setenv(args[2], reference)
}
