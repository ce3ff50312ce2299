package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// network forwards connections to a database, and delays cancel requests.
type network struct {
	url     string
	arrived chan struct{} // receives when a cancel request has arrived
	deliver chan bool     // whether to deliver that request or lose it
	over    chan struct{} // receives when the request is delivered or lost
}

func newNetwork(t *testing.T, database string) *network {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	n := &network{arrived: make(chan struct{}, 1), deliver: make(chan bool, 1), over: make(chan struct{}, 1)}
	server := u.Host
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go n.carry(c, server)
		}
	}()
	u.Host = l.Addr().String()
	n.url = u.String()
	return n
}

func (n *network) carry(c net.Conn, server string) {
	defer c.Close()
	start := make([]byte, 8)
	if _, err := io.ReadFull(c, start); err != nil {
		return
	}
	if binary.BigEndian.Uint32(start[4:]) == 80877102 { // CancelRequest
		defer func() { n.over <- struct{}{} }()
		n.arrived <- struct{}{}
		if !<-n.deliver {
			return
		}
	}
	s, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer s.Close()
	if _, err := s.Write(start); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(s, c) // the other direction reports errors
	}()
	_, _ = io.Copy(c, s)
}

// A statement is given up just before its end. Its cancel request must not hit the next statement
// on the connection, which is another caller's.
func TestLateCancel(t *testing.T) {
	server := pgtest.Start(t)
	for name, tt := range map[string]struct {
		late    bool // the request arrives when its statement has ended; otherwise during the next statement
		deliver bool
		kept    bool // the connection is used again
	}{
		"late":     {late: true, deliver: true, kept: true},
		"too late": {deliver: true},
		"lost":     {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := server.Database(t)
			direct, n := open(t, database, Options{}), newNetwork(t, database)
			defer direct.Close()
			s := open(t, n.url, Options{MaxConns: 1})
			defer s.Close()
			lock := func() (unlock func()) {
				t.Helper()
				tx, err := direct.pool.Begin(t.Context())
				if err == nil {
					_, err = tx.Exec(t.Context(), waitForLock)
				}
				if err != nil {
					t.Fatal(err)
				}
				return func() { _ = tx.Rollback(t.Context()) }
			}
			backend := func() (pid int) {
				t.Helper()
				if err := s.pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
					t.Fatal(err)
				}
				return pid
			}
			cancelled := func() (kept bool) {
				before := backend()
				unlock := lock()
				ctx, giveUp := context.WithCancel(t.Context())
				ended := run(ctx, s)
				waiting(t, direct, true)
				giveUp()
				<-n.arrived
				unlock()
				if tt.late {
					ends(t, direct, before)
					n.deliver <- tt.deliver
				}
				<-ended // with an error or without one
				unlock = lock()
				next := run(t.Context(), s)
				waiting(t, direct, true)
				if !tt.late {
					n.deliver <- tt.deliver
				}
				<-n.over
				unlock()
				if err := <-next; err != nil {
					t.Errorf("the next one: %v", err)
				}
				return before == backend()
			}
			if !tt.kept {
				if cancelled() {
					t.Error("the connection is used again")
				}
				return
			}
			// If the machine pauses for longer than cancelWithin, the connection is given up.
			wait.Until(t, "the connection is used again", cancelled)
		})
	}
}

const waitForLock = "SELECT pg_advisory_xact_lock(1)"

// run runs a statement that waits for the lock.
func run(ctx context.Context, s *Store) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := s.pool.Exec(ctx, waitForLock)
		ended <- err
	}()
	return ended
}

// ends waits until a backend has ended its statement or is gone.
func ends(t *testing.T, s *Store, backend int) {
	t.Helper()
	wait.Until(t, "the statement has ended", func() bool {
		var state string
		err := s.pool.QueryRow(t.Context(), "SELECT state FROM pg_stat_activity WHERE pid = $1", backend).Scan(&state)
		if err != nil && err != pgx.ErrNoRows {
			t.Fatal(err)
		}
		return state != "active"
	})
}
