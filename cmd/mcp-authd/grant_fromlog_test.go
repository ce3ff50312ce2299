package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// lost is an installation that is restored from a copy without its last revocations.
type lost struct {
	t       *testing.T
	dir     string
	environ []string
	now     time.Time
}

func (l *lost) run(want string, args ...string) {
	l.t.Helper()
	code, out, errs := runs(l.t, l.environ, append(args, "--data", l.dir)...)
	if code != exitOK || !strings.Contains(out, want) {
		l.t.Fatalf("%s: got %d %s %s, want %q", strings.Join(args, " "), code, out, errs, want)
	}
}

func (l *lost) store(do func(context.Context, storage.Store) error) {
	l.t.Helper()
	s, err := sqlite.Open(l.t.Context(), filepath.Join(l.dir, "mcp-authd.db"), sqlite.Options{})
	if err == nil {
		err = errors.Join(do(l.t.Context(), s), s.Close())
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// grant gives a client access for a user.
func (l *lost) grant(id, user, client string) {
	l.store(func(ctx context.Context, s storage.Store) error {
		u, err := s.UserByName(ctx, user)
		if err != nil {
			return err
		}
		c, err := s.Client(ctx, client)
		if errors.Is(err, storage.ErrNotFound) {
			c, err = storage.Client{ID: client, Name: client, Source: storage.SourceStatic, CreatedAt: l.now}, nil
		}
		if err != nil {
			return err
		}
		session, code, soon := storage.Hash{1}, storage.Hash{2}, l.now.Add(time.Hour)
		copy(session[1:], id)
		copy(code[1:], id)
		err = errors.Join(
			s.PutSession(ctx, storage.Session{Hash: session, UserID: u.ID, CreatedAt: l.now, ExpiresAt: soon},
				storage.SignInStart{PasswordHash: u.PasswordHash}),
			s.Approve(ctx, storage.Approval{Session: session, Now: l.now,
				Client: &c, Material: c.Material(),
				Grant: storage.Grant{
					ID: id, ClientID: client, UserID: u.ID, Resource: "https://mcp.example/mcp", CreatedAt: l.now,
					ExpiresAt: soon,
				},
				Code: storage.Code{Hash: code, ExpiresAt: soon}}))
		if err == nil {
			_, err = s.RedeemCode(ctx, storage.RedeemCode{Hash: code, ClientID: client, Now: l.now})
		}
		return err
	})
}

// TestCutsOfALostIntervalAreRepeated checks that revocations lost by the database are repeated from
// a server's log (issue 12, 2.3).
func TestCutsOfALostIntervalAreRepeated(t *testing.T) {
	l := &lost{t: t, dir: t.TempDir(), now: time.Now().Add(-time.Second)}
	l.environ = []string{
		"HOME=" + t.TempDir(), "MCP_AUTHD_LOG_FORMAT=json", "MCP_AUTHD_LISTEN=" + nettest.For(t),
		"MCP_AUTHD_MANAGEMENT_LISTEN=",
	}
	log := &output{}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"serve", "--data", l.dir}, std{strings.NewReader(""), log, log, l.environ})
	}()
	defer cancel()
	inTime(t, log, "it starts",
		func() bool { return readyAt(strings.TrimPrefix(l.environ[2], "MCP_AUTHD_LISTEN=")) })
	for _, name := range []string{"alice", "bob", "carol", "dave"} {
		l.run("", "user", "add", name, "--password-stdin")
	}
	for _, g := range [][3]string{
		{"grt_one", "alice", "app"}, {"grt_two", "alice", "gone"}, {"grt_three", "bob", "app"},
		{"grt_four", "carol", "app"}, {"grt_kept", "alice", "other"},
	} {
		l.grant(g[0], g[1], g[2])
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	l.run("", "backup", copied)
	l.run("revoked grt_one", "grant", "revoke", "grt_one")
	l.run("", "client", "delete", "gone", "--yes")
	l.run("", "user", "disable", "bob")
	l.run("", "user", "disable", "carol")
	l.run("", "user", "enable", "carol")
	l.run("", "user", "delete", "dave", "--yes")
	inTime(t, log, "the log has all", func() bool {
		return strings.Contains(log.String(), "user.deleted") && strings.Contains(log.String(), "grant.revoked") &&
			strings.Contains(log.String(), "client.deleted")
	})
	cancel()
	if got := <-code; got != exitOK {
		t.Fatalf("the server ended with %d", got)
	}
	l.restore(copied)
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	l.run("repeated: 0 cuts", "grant", "revoke", "--from-log", file, "--since",
		time.Now().Add(time.Hour).Format(time.RFC3339), "--yes")
	l.run("repeated: 5 cuts", "grant", "revoke", "--from-log", file, "--since", "10m", "--yes")
	l.store(func(ctx context.Context, s storage.Store) error {
		live, err := s.ListGrants(ctx, "", "", "", 10)
		if err != nil || len(live) != 1 || live[0].ID != "grt_kept" {
			t.Errorf("got %v, %v; want that grt_kept alone is left", live, err)
		}
		bob, err := s.UserByName(ctx, "bob")
		carol, carolErr := s.UserByName(ctx, "carol")
		_, daveErr := s.UserByName(ctx, "dave")
		_, goneErr := s.Client(ctx, "gone")
		if !bob.Disabled || carol.Disabled || !errors.Is(daveErr, storage.ErrNotFound) ||
			!errors.Is(goneErr, storage.ErrRevoked) {
			t.Errorf("bob disabled: %v, carol: %v, dave: %v, the client: %v", bob.Disabled, carol.Disabled, daveErr,
				goneErr)
		}
		return errors.Join(err, carolErr)
	})
	l.now = time.Now()
	l.grant("grt_new", "carol", "app") // later than every logged revocation
	l.run("repeated: 0 cuts", "grant", "revoke", "--from-log", file, "--yes")
	code2, _, errs := runs(t, l.environ, "grant", "revoke", "--from-log", copied+"x", "--data", l.dir)
	if code2 != exitFailure || !strings.Contains(errs, "--from-log: open") {
		t.Errorf("a log that is not there: got %d %s", code2, errs)
	}
	if err := os.WriteFile(file, []byte("INF token.revoked grant=grt_kept\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, errs := runs(t, l.environ, "grant", "revoke", "--from-log", file, "--data",
		l.dir); got != exitFailure || !strings.Contains(errs, "no line of the log is an event") {
		t.Errorf("a log that is not JSON: got %d %s", got, errs)
	}
}

// TestACutOfManyIsRepeatedFromTheLog checks a revocation of many grants, which is one log event,
// besides those of single grants (issue 12, 2.3). Access given again since stays, although the
// event is later: it is logged when every grant is marked.
func TestACutOfManyIsRepeatedFromTheLog(t *testing.T) {
	const n = 2500
	dir, s := grantedInstallation(t, n, "hosted", "other")
	single, err := s.ListGrants(t.Context(), "", "other", "", 1)
	if err != nil || len(single) != 1 {
		t.Fatal(single, err)
	}
	l := &lost{t: t, dir: dir, environ: []string{"HOME=" + t.TempDir()}, now: time.Now()}
	copied := filepath.Join(t.TempDir(), "copy.db")
	l.run("", "backup", copied)
	l.run("revoked: at least 1000 grants", "grant", "revoke", "--client", "hosted", "--yes")
	l.run("revoked "+single[0].ID, "grant", "revoke", single[0].ID)
	log := l.logOfServer("grants.revoked", "grant.revoked")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	l.restore(copied)
	l.now = time.Now()
	l.grant("grt_later", "alice", "hosted")

	file := filepath.Join(t.TempDir(), "log")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"time":"` + l.now.Add(time.Minute).Format(time.RFC3339) +
		`","event":"grants.revoked","client_id":"hosted","revoked_at":"` +
		l.now.Add(-time.Hour).Format(time.RFC3339) + `"}` + "\n")
	l.run("repeated: 0 cuts", "grant", "revoke", "--from-log", file, "--yes")
	write(log)
	l.run("repeated: 2501 cuts", "grant", "revoke", "--from-log", file, "--yes")
	l.run("repeated: 0 cuts", "grant", "revoke", "--from-log", file, "--yes")
	l.store(func(ctx context.Context, s storage.Store) error {
		hosted, err := s.ListGrants(ctx, "", "hosted", "", n)
		other, otherErr := s.ListGrants(ctx, "", "other", "", n+1)
		// The command that revoked one grant of alice for the other client revoked that whole
		// application.
		if len(hosted) != 1 || hosted[0].ID != "grt_later" || len(other) != 0 {
			t.Errorf("%d grants of the client are left, and %d of the other one; want the later one and none",
				len(hosted), len(other))
		}
		return errors.Join(err, otherErr)
	})
}

// logOfServer runs a server until its log contains the events, and returns the log.
func (l *lost) logOfServer(events ...string) string {
	l.t.Helper()
	log := &output{}
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	ended := make(chan int, 1)
	environ := append([]string{
		"MCP_AUTHD_LOG_FORMAT=json", "MCP_AUTHD_LISTEN=" + nettest.For(l.t), "MCP_AUTHD_MANAGEMENT_LISTEN=",
	}, l.environ...)
	go func() {
		ended <- run(ctx, []string{"serve", "--data", l.dir}, std{strings.NewReader(""), log, log, environ})
	}()
	for _, e := range events {
		inTime(l.t, log, "the log has "+e, func() bool { return strings.Contains(log.String(), `"event":"`+e+`"`) })
	}
	cancel()
	if code := <-ended; code != exitOK {
		l.t.Fatalf("the server ended with %d:\n%s", code, log.String())
	}
	return log.String()
}

// restore replaces the database with a backup.
func (l *lost) restore(backup string) {
	l.t.Helper()
	database := filepath.Join(l.dir, "mcp-authd.db")
	_ = os.Remove(database + "-wal")
	_ = os.Remove(database + "-shm")
	if err := os.Rename(backup, database); err != nil {
		l.t.Fatal(err)
	}
}

// TestALogIsReadWhateverElseIsInIt checks lines with a container runtime's prefix, and unrelated
// lines.
func TestALogIsReadWhateverElseIsInIt(t *testing.T) {
	const text = `mcp-authd 1.0 listening
2026-03-01T12:00:01Z stdout F {"time":"2026-03-01T12:00:01Z","event":"user.deleted","user":"usr_1"}
authd-1  | {"time":"2026-03-01T12:00:09Z","at":"2026-03-01T12:00:00Z","event":"grant.revoked","grant":"grt_1"}
{"time":"2026-03-01T12:00:02Z","msg":"request","path":"/token"}
{"broken
{"time":"2026-02-01T12:00:02Z","event":"grant.revoked","grant":"grt_early"}
`
	since := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	got, err := readLog(strings.NewReader(text), since)
	if err != nil || len(got) != 2 || got[0].Grant != "grt_1" || got[1].User != "usr_1" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, c := range []struct {
		text string
		ok   bool
	}{{"", true}, {"15m", true}, {"2026-03-01T12:00:00Z", true}, {"2026-03-01 12:00", true}, {"yesterday", false}} {
		if _, err := parseMoment("--since", c.text); (err == nil) != c.ok {
			t.Errorf("--since %q: %v", c.text, err)
		}
	}
}
