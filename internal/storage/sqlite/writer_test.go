package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// hold occupies the writer until release is called, so that verbs gather behind it.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.write(context.Background(), "hold",
			func(*conn) error { close(begun); <-end; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	return func() { close(end); wg.Wait() }
}

func later() time.Time { return time.Now().Add(time.Hour) }

func TestAFailedVerbOfABatchUndoesOnlyItself(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	defer s.Close()
	release := hold(t, s)
	broken := errors.New("broken")
	var wg sync.WaitGroup
	for i := range 2 * maxBatch {
		wg.Go(func() {
			err := s.write(ctx, "test", func(c *conn) error {
				if _, err := c.exec("INSERT INTO spent (purpose, id, expires_at) VALUES ('batch', ?, 0)",
					fmt.Sprint(i)); err != nil {
					return err
				}
				if i%2 == 0 {
					return broken
				}
				return nil
			})
			if want := map[bool]error{true: broken}[i%2 == 0]; !errors.Is(err, want) {
				t.Errorf("verb %d: got %v, want %v", i, err, want)
			}
		})
	}
	release()
	wg.Wait()
	var n int
	err := s.read(ctx, "count", func(c *conn) error { return c.one([]any{&n}, "SELECT count(*) FROM spent") })
	if err != nil || n != maxBatch {
		t.Errorf("got %d rows, %v; want %d", n, err, maxBatch)
	}
}

// One verb is stopped by a constraint, others continue, and one decides to fail without a change.
func TestABatchWithEveryKindOfFailure(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	defer s.Close()
	release := hold(t, s)
	insert := func(c *conn, id string) error {
		_, err := c.exec("INSERT INTO spent (purpose, id, expires_at) VALUES ('kinds', ?, 0)", id)
		return err
	}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			err := s.write(ctx, "test", func(c *conn) error {
				switch i % 4 {
				case 0: // decided, no change
					return storage.ErrNotFound
				case 1: // changed, then stopped by a constraint
					if err := insert(c, fmt.Sprint(i)); err != nil {
						return err
					}
					return insert(c, fmt.Sprint(i))
				case 2: // changed by RETURNING, then decided
					var n int
					if err := c.one([]any{&n},
						"INSERT INTO spent (purpose, id, expires_at) VALUES ('kinds', ?, 0) RETURNING expires_at",
						fmt.Sprint(i)); err != nil {
						return err
					}
					return storage.ErrSpent
				}
				return insert(c, fmt.Sprint(i))
			})
			if want := []error{
				storage.ErrNotFound, storage.ErrExists, storage.ErrSpent, nil}[i%4]; !errors.Is(err, want) {
				t.Errorf("verb %d: got %v, want %v", i, err, want)
			}
		})
	}
	release()
	wg.Wait()
	var n int
	err := s.read(ctx, "count", func(c *conn) error {
		return c.one([]any{&n}, "SELECT count(*) FROM spent WHERE purpose = 'kinds'")
	})
	if err != nil || n != 8 {
		t.Errorf("got %d rows, %v; want those of the 8 that succeeded", n, err)
	}
}

func TestAVerbGivenUpBeforeItBeganIsNotCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, filepath.Join(t.TempDir(), "db"))
		defer s.Close()
		release := hold(t, s)
		ctx, cancel := context.WithCancel(context.Background())
		got := make(chan error)
		go func() { got <- s.Spend(ctx, "p", "x", later()) }()
		synctest.Wait() // until it waits for the writer
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		release()
		if err := s.Spend(context.Background(), "p", "x", later()); err != nil {
			t.Errorf("it was carried out: %v", err)
		}
	})
}

func TestCloseAnswersThoseWhoWait(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "db"))
	release := hold(t, s)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := s.Spend(context.Background(), "p", fmt.Sprint(i), later()); err != nil &&
				!errors.Is(err, errClosed) {
				t.Error(err)
			}
		})
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	release()
	wg.Wait()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := s.User(context.Background(), "x"); !errors.Is(err, errClosed) {
		t.Errorf("a read afterwards: got %v, want errClosed", err)
	}
}

// TestTwoProcessesShareAFile represents the command line beside a running server.
func TestTwoProcessesShareAFile(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	a, b := open(t, path), open(t, path)
	defer a.Close()
	defer b.Close()
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			s := []*Store{a, b}[i%2]
			if err := s.CreateUser(ctx,
				storage.User{ID: fmt.Sprint(i), Name: fmt.Sprint("u", i), CreatedAt: time.Now()}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := a.ListUsers(ctx, "", 1000); err != nil || len(all) != 200 {
		t.Errorf("got %d users, %v; want 200", len(all), err)
	}
}

// TestProofsAloneDoNotWaitForTheDisk: a proof that shares a commit with another verb waits with it.
func TestProofsAloneDoNotWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
		defer s.Close()
		const normal, full = 1, 2 // of PRAGMA synchronous
		verb := func(name string, do func(context.Context, func(*conn) error) error, want int) {
			t.Helper()
			err := do(ctx, func(c *conn) error {
				var got int
				if err := c.c.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&got); err != nil {
					return err
				}
				if got != want {
					t.Errorf("%s: synchronous is %d, want %d", name, got, want)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			verb("a proof", s.writer.doFleeting, normal)
			verb("another verb", s.writer.do, full)
		}
		verb("a proof", s.writer.doFleeting, normal)
		release := hold(t, s)
		var wg sync.WaitGroup
		begun := make(chan struct{})
		wg.Go(func() {
			close(begun)
			verb("another verb of a batch", s.writer.do, full)
		})
		<-begun
		for range 4 {
			wg.Go(func() { verb("a proof of the batch", s.writer.doFleeting, full) })
		}
		synctest.Wait() // until all of them wait
		release()
		wg.Wait()
	})
}

// A panic in a verb does not break the connection.
func TestAVerbThatPanics(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	defer s.Close()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		s.write(ctx, "panic", func(c *conn) error {
			use := storage.Use{Purpose: "p", ID: "x", Expires: later()}
			if err := portable.Spend(portableConn{c}, use); err != nil {
				return err
			}
			panic("broken")
		})
	}()
	if err := s.Spend(ctx, "p", "x", later()); err != nil {
		t.Errorf("got %v: it was carried out, or the connection is unusable", err)
	}
}
