package postgres

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// hung is a host that accepts connections and sends nothing, like a hung server. It counts them.
func hung(t *testing.T) (address string, taken *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken = &atomic.Int64{}
	go func() {
		var held []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			held = append(held, c)
			taken.Add(1)
		}
		for _, c := range held {
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), taken
}

// later is a clock that can be set ahead of the real time.
type later struct{ by atomic.Int64 }

func (c *later) now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

func (c *later) add(d time.Duration) { c.by.Add(int64(d)) }

func write(s *Store, t *testing.T) error {
	_, err := s.Remember(t.Context(), "probe", []byte("x"))
	return err
}

// TestH4AHostThatHangsCostsSecondsOnce (operations H4): a URL with two hosts needs no other
// options, and the next connection uses the findings about them.
func TestH4AHostThatHangsCostsSecondsOnce(t *testing.T) {
	server := pgtest.Start(t)
	first, taken := hung(t)
	url := strings.Replace(server.Database(t), "@", "@"+first+",", 1)
	s := open(t, url, Options{})
	defer s.Close()
	before := taken.Load()
	for range 3 {
		s.pool.Reset()
		if err := write(s, t); err != nil {
			t.Error(err)
		}
	}
	if got := taken.Load(); before == 0 || got != before {
		t.Errorf("the host that hangs was tried %d times at the start, and %d times afterwards", before, got-before)
	}
}

func TestH4WhatSeveralHostsNeedIsTheDefault(t *testing.T) {
	for _, c := range []struct {
		url     string
		timeout time.Duration
		checked bool
	}{
		{"postgres://a/db", connectTimeoutAlone, false},
		{"postgres://a,b/db", connectTimeout, true},
		{"postgres://a,b/db?sslmode=require", connectTimeout, true},
		{"postgres://a:1,a:2/db", connectTimeout, true},
		{"host=a,b dbname=db", connectTimeout, true},
		{"postgres://a/db?target_session_attrs=primary", connectTimeout, true},
		{"postgres://a,b/db?connect_timeout=7&target_session_attrs=any", 7 * time.Second, false},
	} {
		got, err := config(c.url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.ConnConfig.ConnectTimeout != c.timeout || (got.ConnConfig.ValidateConnect != nil) != c.checked {
			t.Errorf("%s: got %s, role checked %v", c.url, got.ConnConfig.ConnectTimeout,
				got.ConnConfig.ValidateConnect != nil)
		}
	}
}

// TestH4WritesFindThePrimary: the first host is a standby. Then the primary hangs and the standby
// is promoted, while connections to the old primary are open.
func TestH4WritesFindThePrimary(t *testing.T) {
	primary := pgtest.StartOwn(t)
	standby := primary.Standby(t, "n2")
	url := strings.Replace(primary.URL(), primary.Host(), standby.Host()+","+primary.Host(), 1)
	var clock later
	s := open(t, url, Options{Now: clock.now})
	defer s.Close()
	if err := write(s, t); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the connection is released", func() bool { return s.pool.Stat().AcquiredConns() == 0 })
	clock.add(idleFor)
	defer primary.Resume()
	if err := errors.Join(primary.Pause(), standby.Promote()); err != nil {
		t.Fatal(err)
	}
	if err := write(s, t); err != nil {
		t.Errorf("the first write after it: %v", err)
	}
	// No connection may try the hung host, because each would wait for seconds.
	s.pool.hosts.mu.Lock()
	good := s.pool.hosts.good
	s.pool.hosts.mu.Unlock()
	if good != standby.Host() {
		t.Errorf("the next connection is tried at %s, want %s", good, standby.Host())
	}
	for _, c := range s.pool.AcquireAllIdle(t.Context()) {
		if at := c.Conn().PgConn().Conn().RemoteAddr().String(); at != standby.Host() {
			t.Errorf("a connection to %s is kept, want that all are to %s", at, standby.Host())
		}
		c.Release()
	}
	if err := write(s, t); err != nil {
		t.Errorf("the second write: %v", err)
	}
}

// TestM3ConnectionsThatHaveBecomeReadOnlyAreDropped (operations M3).
func TestM3ConnectionsThatHaveBecomeReadOnlyAreDropped(t *testing.T) {
	server := pgtest.StartOwn(t)
	url := server.Database(t)
	name := url[strings.LastIndex(url, "/")+1 : strings.Index(url, "?")]
	alter := func(what string) {
		t.Helper()
		if err := server.Exec(fmt.Sprintf(`ALTER DATABASE "%s" %s`, name, what)); err != nil {
			t.Fatal(err)
		}
	}
	var clock later
	s := open(t, url, Options{Now: clock.now})
	defer s.Close()
	alter("SET default_transaction_read_only = on")
	s.pool.Reset()
	if err := write(s, t); state(err) != readOnly {
		t.Fatalf("got %v, want %s", err, readOnly)
	}
	if _, err := s.Keys(t.Context(), time.Now()); err != nil {
		t.Errorf("what only reads does not work: %v", err)
	}
	alter("RESET default_transaction_read_only")
	clock.add(dropEvery)
	if err := write(s, t); err != nil {
		t.Errorf("with writes allowed again: %v", err)
	}
}

// TestM5MoreReplicasThanSlotsWait (operations M5): callers without a connection wait for one.
func TestM5MoreReplicasThanSlotsWait(t *testing.T) {
	server := pgtest.StartOwn(t)
	url := server.Database(t)
	name := url[strings.LastIndex(url, "/")+1 : strings.Index(url, "?")]
	for _, sql := range []string{"CREATE ROLE few LOGIN", fmt.Sprintf(`ALTER DATABASE "%s" OWNER TO few`, name)} {
		if err := server.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	url = strings.Replace(url, "postgres@", "few@", 1)
	var replicas []*Store
	for range 2 {
		s := open(t, url, Options{})
		defer s.Close()
		replicas = append(replicas, s)
	}
	// Set only now, so that each replica already has a connection to wait for.
	if err := server.Exec("ALTER ROLE few CONNECTION LIMIT 3"); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	const callers, each = 12, 20
	for i := range callers {
		go func() {
			for n := range each {
				errs <- replicas[i%len(replicas)].TouchLogin(t.Context(), fmt.Sprint(i, n), time.Now())
			}
		}()
	}
	failed := 0
	for range callers * each {
		if err := <-errs; !errors.Is(err, storage.ErrNotFound) {
			if failed++; failed == 1 {
				t.Log(err)
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d verbs failed", failed, callers*each)
	}
}

// TestM5ThePoolFitsManyReplicas: six replicas of any size fit into PostgreSQL's default limit.
func TestM5ThePoolFitsManyReplicas(t *testing.T) {
	c, err := config("postgres://a/db", Options{})
	if err != nil || c.MaxConns != 16 {
		t.Errorf("got %d connections, %v; want 16", c.MaxConns, err)
	}
}
