package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// lateCancels is the URL of a database by way of a network that holds requests to cancel up for a while, and, when
// lost is set, loses them then.
func lateCancels(t *testing.T, database string, late time.Duration, lost bool) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				start := make([]byte, 8)
				if _, err := io.ReadFull(c, start); err != nil {
					return
				}
				if binary.BigEndian.Uint32(start[4:]) == 80877102 { // CancelRequest
					time.Sleep(late)
					if lost {
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
					_, _ = io.Copy(s, c) // the other direction tells
				}()
				_, _ = io.Copy(c, s)
			}()
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// A statement that is given up just before its end has its connection cancelled, and not the statement of another
// caller that comes next on it.
func TestLateCancel(t *testing.T) {
	database := pgtest.Start(t).Database(t)
	for name, tt := range map[string]struct {
		late time.Duration
		lost bool
		kept bool // the connection is used again
	}{
		"late":     {cancelWithin / 5, false, true},
		"too late": {cancelWithin * 3 / 2, false, false},
		"lost":     {cancelWithin * 3 / 2, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, lateCancels(t, database, tt.late, tt.lost), Options{MaxConns: 1})
			defer s.Close()
			backend := func() (pid int) {
				if err := s.pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
					t.Fatal(err)
				}
				return pid
			}
			before := backend()
			soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, _ = s.pool.Exec(soon, "SELECT pg_sleep(0.1)") // it ends before the request comes, or is cancelled
			if _, err := s.pool.Exec(t.Context(), "SELECT pg_sleep(2)"); err != nil {
				t.Errorf("the next one: %v", err)
			}
			if after := backend(); tt.kept != (before == after) {
				t.Errorf("backend %d, then %d", before, after)
			}
		})
	}
}
