package mcpserver_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/mcpserver"
)

// slow returns the address of a database that accepts connections, but answers only after ready is
// closed.
func slow(t *testing.T, database string, ready <-chan struct{}) string {
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
	to := u.Host
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				<-ready
				db, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer db.Close()
				var both sync.WaitGroup
				both.Go(func() { _, _ = io.Copy(db, c); db.(*net.TCPConn).CloseWrite() })
				both.Go(func() { _, _ = io.Copy(c, db); c.(*net.TCPConn).CloseWrite() })
				both.Wait()
			}()
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// RS-01: while its database is not ready, the server answers that it is starting and asks clients
// to retry. It then serves on the same address.
func TestStarting(t *testing.T) {
	alone(t)
	address := nettest.For(t)
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	ready, ended := make(chan mcpserver.Ready, 1), make(chan error, 1)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go func() {
		ended <- mcpserver.Serve(ctx, notes(readNotes), mcpserver.Options{
			Listen:     address,
			DataDir:    filepath.Join(t.TempDir(), "d"),
			Database:   slow(t, pgtest.Start(t).Database(t), open),
			SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)},
			Logger:     slog.New(slog.DiscardHandler),
			Ready:      func(r mcpserver.Ready) { ready <- r },
		})
	}()
	get := func(path string) *http.Response {
		t.Helper()
		for {
			r, err := http.Get("http://" + address + path)
			if err == nil {
				r.Body.Close()
				return r
			}
			select {
			case err := <-ended:
				t.Fatalf("it ended: %v", err)
			case <-time.After(20 * time.Millisecond): // it is not listening yet
			}
		}
	}
	for _, path := range []string{"/healthz", "/mcp", "/.well-known/oauth-authorization-server"} {
		r := get(path)
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: got %d, Retry-After %q; want 503", path, r.StatusCode, r.Header.Get("Retry-After"))
		}
	}
	silent, err := net.Dial("tcp", address) // sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	release()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	}
	for path, want := range map[string]int{"/healthz": 200, "/mcp": 401} {
		if r := get(path); r.StatusCode != want {
			t.Errorf("%s of a server that is ready: got %d, want %d", path, r.StatusCode, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
