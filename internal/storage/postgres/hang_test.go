package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// machine forwards connections to a database until it hangs. Then it accepts connections and data,
// and never answers.
type machine struct {
	host  string
	hangs atomic.Bool
	tried atomic.Int64 // new connections while it hangs, without cancel requests
	taken atomic.Int64 // pieces of data that it accepted while it hangs
	ended chan struct{}
}

func newMachine(t *testing.T, server string) *machine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{host: l.Addr().String(), ended: make(chan struct{})}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go m.carry(c, server)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return m
}

func (m *machine) carry(c net.Conn, server string) {
	defer c.Close()
	start := make([]byte, 8)
	if _, err := io.ReadFull(c, start); err != nil {
		return
	}
	if m.hangs.Load() && binary.BigEndian.Uint32(start[4:]) != 80877102 { // CancelRequest
		m.tried.Add(1)
	}
	s, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		<-m.ended
		c.Close()
	}()
	go func() {
		_, _ = io.Copy(c, s) // the other direction reports errors
	}()
	for b := append(make([]byte, 0, 32<<10), start...); ; {
		if m.hangs.Load() {
			m.taken.Add(1)
		} else if _, err := s.Write(b); err != nil {
			return
		}
		n, err := c.Read(b[:cap(b)])
		if err != nil {
			return
		}
		b = b[:n]
	}
}

// end closes all connections, like a machine that restarts.
func (m *machine) end() { close(m.ended) }

// Issue 35: connections to a primary that hangs do not keep their slots while they are being
// closed, and the next connection tries the other host first.
func TestConnectionsToAHungPrimaryGiveTheirSlotsBack(t *testing.T) {
	const slots = 4
	u, err := url.Parse(pgtest.Start(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	primary := newMachine(t, server)
	u.Host = primary.host + "," + server
	s := open(t, u.String()+"&connect_timeout=60", Options{MaxConns: slots})
	defer s.Close()
	defer primary.end() // Close waits until the connections to it are closed

	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var connected, verbs sync.WaitGroup
	connected.Add(slots)
	hangs := make(chan struct{})
	for i := range slots {
		ctx := ctx
		if i == 0 {
			ctx = storage.Aside(ctx)
		}
		verbs.Go(func() {
			done := sync.OnceFunc(connected.Done)
			defer done()
			err := s.on(ctx, func(c *pgxpool.Conn) error {
				done()
				<-hangs
				_, err := c.Exec(ctx, "SELECT 1")
				return err
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that the statement was given up", err)
			}
		})
	}
	connected.Wait()
	primary.hangs.Store(true)
	close(hangs)
	wait.Until(t, "all statements are sent", func() bool { return primary.taken.Load() >= slots })
	giveUp()
	verbs.Wait()
	if n := s.pool.Stat().TotalConns(); n != 0 {
		t.Errorf("%d of %d slots are taken by connections that are being closed", n, slots)
	}
	for _, ctx := range []context.Context{t.Context(), storage.Aside(t.Context())} {
		if _, err := s.Remember(ctx, "probe", []byte("x")); err != nil {
			t.Error(err)
		}
	}
	if n := primary.tried.Load(); n != 0 {
		t.Errorf("the host that hangs was tried %d times before the other one", n)
	}
}

// Issue 35: a caller that leaves a healthy server does not make it the last one to be tried.
func TestACanceledTransactionIsNoHang(t *testing.T) {
	s := open(t, pgtest.Start(t).Database(t), Options{MaxConns: 2})
	defer s.Close()
	ctx, leave := context.WithCancel(t.Context())
	err := s.tx(ctx, "wait", func(ctx context.Context, q querier) error {
		go func() {
			defer leave()
			wait.Poll(wait.Bound, func() bool {
				var running bool
				err := s.pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity"+
					" WHERE state = 'active' AND query = 'SELECT pg_sleep(60)')").Scan(&running)
				return err == nil && running
			})
		}()
		_, err := q.Exec(ctx, "SELECT pg_sleep(60)")
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the caller left", err)
	}
	s.pool.hosts.mu.Lock()
	defer s.pool.hosts.mu.Unlock()
	if s.pool.hosts.silent != "" {
		t.Errorf("%s counts as a host that does not answer", s.pool.hosts.silent)
	}
}
