package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// A verb returns the result of its last run. A list has each record once, also if the verb ran a
// second time because another verb of its batch was undone. In a database in memory, this also
// holds for verbs that only read.
func TestAVerbThatIsRunTwiceReturnsEachRecordOnce(t *testing.T) {
	ctx := context.Background()
	for _, path := range []string{Memory, filepath.Join(t.TempDir(), "db")} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, path)
			defer s.Close()
			seed(t, s)
			runTwice(t, s, listing(ctx, s))
		})
	}
}

// listing returns verbs that list the records of seed and return their number.
func listing(ctx context.Context, s *Store) map[string]func() (int, error) {
	return map[string]func() (int, error){
		"TakeEvents":    func() (int, error) { l, err := s.TakeEvents(ctx, 10, time.Now()); return len(l), err },
		"ListClients":   func() (int, error) { l, err := s.ListClients(ctx, "", 10); return len(l), err },
		"ListUsers":     func() (int, error) { l, err := s.ListUsers(ctx, "", 10); return len(l), err },
		"ListGrants":    func() (int, error) { l, err := s.ListGrants(ctx, "", "", "", 10); return len(l), err },
		"ListResources": func() (int, error) { l, err := s.ListResources(ctx); return len(l), err },
		"Keys":          func() (int, error) { l, err := s.Keys(ctx, time.Now()); return len(l), err },
		"RevokedGrants": func() (int, error) { l, err := s.RevokedGrants(ctx, 0, 10); return len(l), err },
	}
}

// runTwice runs verbs in one batch with a later write that must be rolled back. It must run in a
// bubble.
func runTwice(t *testing.T, s *Store, lists map[string]func() (int, error)) {
	t.Helper()
	release := hold(t, s)
	var wg sync.WaitGroup
	for name, list := range lists {
		wg.Go(func() {
			if n, err := list(); err != nil || n != 1 {
				t.Errorf("%s: got %d records, %v; want one", name, n, err)
			}
		})
	}
	synctest.Wait() // until they wait for the writer
	wg.Go(func() {
		broken := errors.New("broken")
		err := s.write(context.Background(), "test", func(c *conn) error {
			_, err := c.exec("INSERT INTO spent (purpose, id, expires_at) VALUES ('p', 'undone', 0)")
			return errors.Join(err, broken)
		})
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
	synctest.Wait()
	release()
	wg.Wait()
}

// seed stores one record of each kind, and two grants, one of them revoked.
func seed(t *testing.T, s *Store) {
	t.Helper()
	now := time.Now()
	err := s.write(context.Background(), "seed", func(c *conn) error {
		const grant = `INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
			code_hash, code_redirect, code_challenge, code_expires_at, sweep_at, status_index, revoked_at)
			VALUES (?1, 'c', '', 'r', '[]', 0, 0, 1e15, x'00', '', '', 1e15, 1e15, ?2, ?3)`
		return all(run(c, grant, "live", 1, nil), run(c, grant, "revoked", 2, 1))
	})
	if err == nil {
		err = errors.Join(
			s.PutEvent(t.Context(), storage.Event{ID: "evt", At: now, Name: "test", Fields: []byte("{}")}),
			s.PutClient(t.Context(), storage.Client{ID: "c", AuthMethod: "none", Source: storage.SourceStatic}),
			s.CreateUser(t.Context(), storage.User{ID: "usr", Name: "ada"}),
			s.AddResource(t.Context(), storage.Resource{URI: "https://r.example", Name: "r"}),
		)
	}
	if err == nil {
		_, err = s.PutFirstKey(t.Context(), storage.SigningKey{
			ID: "key", Algorithm: "ES256", Public: []byte("{}"), Private: []byte("x"),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A verb that fails while it reads rows returned by its change undoes the change: an event that
// nobody received is still stored.
func TestAVerbThatFailsAtWhatItsChangeReturnsIsUndone(t *testing.T) {
	s := open(t, Memory)
	defer s.Close()
	err := s.write(t.Context(), "seed", func(c *conn) error {
		return all(
			run(c, "INSERT INTO departures (key, sealed, expires_at) VALUES (x'00', x'00', 1)"), // not a hash
			run(c, "INSERT INTO departures (key, sealed, expires_at) VALUES (zeroblob(32), x'00', 2)"),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.AbandonedDepartures(t.Context(), time.Now(), 10); err == nil {
		t.Fatalf("got %+v, want the error of a key that is no hash", out)
	}
	var n int
	err = s.read(t.Context(), "count", func(c *conn) error {
		return c.one([]any{&n}, "SELECT count(*) FROM departures")
	})
	if err != nil || n != 2 {
		t.Errorf("%d departures are left, %v; want both: the verb has failed", n, err)
	}
}
