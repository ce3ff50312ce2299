package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/cutting"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

const manyGrantsOf = `INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
	code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, status_index)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
SELECT 'grt_' || hex(randomblob(13)), ?2, (SELECT id FROM users), 'https://mcp.example.com/mcp', '["mcp"]', ?3, ?3, ?4,
	randomblob(32), '', '', ?3, ?3, ?4, (SELECT coalesce(max(status_index), 0) FROM grants) + i FROM n`

// grantedInstallation returns a data directory with an account and many grants to each of some
// clients.
func grantedInstallation(t *testing.T, n int, clients ...string) (dir string, s *sqlite.Store) {
	t.Helper()
	dir = t.TempDir()
	command(t, t.Context(), nil, exitOK, "user", "add", "alice", "--password-stdin", "--data", dir)
	path := filepath.Join(dir, "mcp-authd.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, id := range clients {
		if err := s.PutClient(t.Context(),
			storage.Client{
				ID: id, Name: "Name of " + id, AuthMethod: "none", Source: storage.SourceStatic,
				CreatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(manyGrantsOf, n, id, time.Now().UnixMilli(),
			time.Now().Add(time.Hour).UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	return dir, s
}

// command runs a command, and returns its output.
func command(t *testing.T, ctx context.Context, out io.Writer, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	if out == nil {
		out = io.Discard
	}
	code := run(ctx, args, std{in: strings.NewReader("correct horse battery\n"), out: io.MultiWriter(&o, out), err: &e,
		environ: []string{"HOME=" + t.TempDir()}})
	if code != want {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, o.String(), e.String())
	}
	return o.String(), e.String()
}

// writerFunc calls a function at each write.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// liveOf returns the number of live grants of a client, and of those marked as ended.
func liveOf(t *testing.T, s *sqlite.Store, client string) (live, marked int) {
	t.Helper()
	all, err := s.ListGrants(t.Context(), "", client, "", 100_000)
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := s.RevokedGrants(t.Context(), 0, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	return len(all), len(revoked)
}

// TestInterruptedDeletionOfAClient checks that deleting a client with many grants takes effect at
// once (Operations H3). An interrupted command leaves nothing alive, and another command marks the
// rest.
func TestInterruptedDeletionOfAClient(t *testing.T) {
	const n = 12_000
	dir, s := grantedInstallation(t, n, "hosted", "other")
	ctx, interrupt := context.WithCancel(t.Context())
	_, stderr := command(t, ctx, writerFunc(interrupt), exitFailure, "client", "delete", "hosted", "--yes", "--data",
		dir)
	if !strings.Contains(stderr, "access has ended") || !strings.Contains(stderr, "mcp-authd grant finish") {
		t.Errorf("an interrupted command says: %s", stderr)
	}
	if live, listed := liveOf(t, s, "hosted"); live != 0 || listed != n {
		t.Errorf("OP-04: interrupted: %d grants are live, and status lists show %d as ended", live, listed)
	}
	_, stderr = command(t, t.Context(), nil, exitFailure, "client", "delete", "hosted", "--yes", "--data", dir)
	if !strings.Contains(stderr, "was deleted") || !strings.Contains(stderr, "mcp-authd grant finish") {
		t.Errorf("the same command once more says: %s", stderr)
	}
	_, stderr = command(t, t.Context(), nil, exitOK, "grant", "finish", "--data", dir)
	if !strings.Contains(stderr, "12,000 grants are marked") {
		t.Errorf("grant finish says: %s", stderr)
	}
	if live, marked := liveOf(t, s, "hosted"); live != 0 || marked != n {
		t.Errorf("finished: %d grants are live and %d marked", live, marked)
	}
	if live, _ := liveOf(t, s, "other"); live != n {
		t.Errorf("%d grants of another client are live", live)
	}
	events, err := s.TakeEvents(t.Context(), 100, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, e := range events {
		told[e.Name]++
		if e.Name == "grants.revoked" && !strings.Contains(string(e.Fields), `"grants":12000`) {
			t.Errorf("the event is %s", e.Fields)
		}
	}
	if told["client.deleted"] != 1 || told["grants.revoked"] != 1 {
		t.Errorf("the events are %v", told)
	}
}

// TestInterruptedRemovalOfAResource checks the same for a resource, whose row is gone before its
// grants are marked.
func TestInterruptedRemovalOfAResource(t *testing.T) {
	const n, uri = 12_000, "https://mcp.example.com/mcp"
	dir, _ := grantedInstallation(t, n, "hosted")
	command(t, t.Context(), nil, exitOK, "resource", "add", uri, "--data", dir)
	ctx, interrupt := context.WithCancel(t.Context())
	command(t, ctx, writerFunc(interrupt), exitFailure, "resource", "remove", uri, "--yes", "--data", dir)
	again := func() string {
		t.Helper()
		_, stderr := command(t, t.Context(), nil, exitFailure, "resource", "remove", uri, "--yes", "--data", dir)
		return stderr
	}
	if got := again(); !strings.Contains(got, "there is no stored resource") ||
		!strings.Contains(got, "mcp-authd grant finish") {
		t.Errorf("the same command once more says: %s", got)
	}
	command(t, t.Context(), nil, exitOK, "grant", "finish", "--data", dir)
	if got := again(); !strings.Contains(got, "there is no stored resource") || strings.Contains(got, "grant finish") {
		t.Errorf("when nothing is left it says: %s", got)
	}
}

func TestRevokingMany(t *testing.T) {
	const n = 3000
	dir, s := grantedInstallation(t, n, "hosted", "other")
	for _, args := range [][]string{
		{}, {"--all", "--client", "hosted"}, {"grt_x", "--all"}, {"--provider", "acme", "--all"},
	} {
		command(t, t.Context(), nil, exitUsage, append([]string{"grant", "revoke", "--data", dir}, args...)...)
	}
	stdout, _ := command(t, t.Context(), nil, exitOK, "grant", "revoke", "--client", "hosted", "--json", "--data", dir)
	var cut struct{ Client, By string }
	if err := json.Unmarshal([]byte(stdout), &cut); err != nil || cut.Client != "hosted" || cut.By != "operator" {
		t.Errorf("got %s, %v", stdout, err)
	}
	if live, marked := liveOf(t, s, "hosted"); live != 0 || marked != n {
		t.Errorf("%d grants of the client are live and %d marked", live, marked)
	}
	_, stderr := command(t, t.Context(), nil, exitFailure, "grant", "revoke", "--provider", "acme", "--data", dir)
	if !strings.Contains(stderr, `there is no provider "acme"`) {
		t.Errorf("a provider that is not there: %s", stderr)
	}
	if live, _ := liveOf(t, s, "other"); live != n {
		t.Errorf("%d grants of another client are live", live)
	}
	stdout, _ = command(t, t.Context(), nil, exitOK, "grant", "revoke", "--all", "--data", dir)
	if live, marked := liveOf(t, s, ""); live != 0 || marked != 2*n ||
		!strings.Contains(stdout, "at least 1000 grants") {
		t.Errorf("%d grants are live and %d marked: %s", live, marked, stdout)
	}
	_, stderr = command(t, t.Context(), nil, exitFailure, "grant", "revoke", "--all", "--data", dir)
	if !strings.Contains(stderr, "no live grant") {
		t.Errorf("nothing is left: %s", stderr)
	}
}

// TestACutIDNamesOneGrant checks truncated IDs. IDs start with the time, so grants of the same
// moment share a prefix. A prefix of several grants selects none; a unique one selects its grant.
func TestACutIDNamesOneGrant(t *testing.T) {
	dir, s := grantedInstallation(t, 4, "app")
	db, err := sql.Open("sqlite", filepath.Join(dir, "mcp-authd.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ids := []string{
		"grt_ZZZZZZZZ1aaaaaaaaaaaaa", "grt_ZZZZZZZZ2aaaaaaaaaaaaa",
		"grt_ZZZZZZZZ2bbbbbbbbbbbbb", "grt_ZZZZZZZZ4ccccccccccccc",
	}
	all, err := s.ListGrants(t.Context(), "", "app", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if _, err := db.Exec("UPDATE grants SET id = ? WHERE id = ?", id, all[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"grt_ZZZZZZZZ1…": ids[0], "grt_ZZZZZZZZ2…": "", "grt_ZZZZZZZZ2b…": ids[2], "grt_ZZZZZZZZ4…": ids[3],
		"grt_ZZZZZZZZ…": "", ids[2]: ids[2], ids[3]: ids[3], "grt_ZZZZZZZZ4cccccccccccd": "",
		"grt_ZZZZZZZZ4ü": "", "": "", "…": "",
	} {
		service := &admin.Service{Store: s}
		if g, err := service.FindGrant(t.Context(), name); g.ID != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, g.ID, err, want)
		}
	}
}

// TestCommandWaitsForTheServer checks that a command waits while a server marks a cut, and repeats
// no work (OP-04).
func TestCommandWaitsForTheServer(t *testing.T) {
	const n = 12_000
	dir, s := grantedInstallation(t, n, "hosted")
	now := time.Now()
	if held, err := s.Lease(t.Context(), "cuts", "server", now, now.Add(time.Hour)); !held || err != nil {
		t.Fatalf("got %t, %v", held, err)
	}
	waits, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		<-waits
		cuts, err := s.PendingCuts(t.Context(), time.Now())
		if err == nil {
			_, err = cutting.Follower{Store: s, Holder: "server", Now: time.Now}.Follow(t.Context(), cuts[0].ID, nil)
		}
		ended <- err
	}()
	var stderr bytes.Buffer
	progress := sync.OnceFunc(func() { close(waits) }) // the first line on standard error
	code := run(t.Context(), []string{"client", "delete", "hosted", "--yes", "--data", dir}, std{
		in:      strings.NewReader(""),
		out:     io.Discard,
		err:     io.MultiWriter(&stderr, writerFunc(progress)),
		environ: []string{"HOME=" + t.TempDir()},
	})
	if progress(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if said := stderr.String(); !strings.Contains(said, "so far") || !strings.Contains(said, "has marked the grants") {
		t.Errorf("the command says: %s", said)
	}
	if live, marked := liveOf(t, s, "hosted"); live != 0 || marked != n {
		t.Errorf("%d grants are live and %d marked", live, marked)
	}
}
