package stdio

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway/peers"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// replicated is a server that forwards requests to others.
type replicated struct {
	*site
	stop func() // ends it like SIGTERM
	kill func() // looks like SIGKILL to others
}

// serveReplicas starts n servers with one store.
func serveReplicas(t *testing.T, n int, c Config) (all []*replicated) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), ":memory:", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for range n {
		all = append(all, serveReplica(t, store, c))
	}
	return all
}

func serveReplica(t *testing.T, store storage.Store, c Config) *replicated {
	t.Helper()
	ring, err := secrets.NewRing([]byte(strings.Repeat("k", secrets.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	id := secrets.ID("rep_")
	c.Resource = "https://mcp.example.com/program"
	c.Peers, err = peers.New(peers.Config{
		Self: id, Ring: ring, Store: store, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &replicated{site: serve(t, "good", c)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end := c.Peers.Serve(l)
	t.Cleanup(func() { end(0) })
	now := time.Now()
	if err := store.SeeReplica(t.Context(), storage.Replica{
		ID: id, Name: id, PeerAddress: l.Addr().String(), StartedAt: now, SeenAt: now,
	}); err != nil {
		t.Fatal(err)
	}
	s.kill = func() {
		end(0)
		s.Close()
	}
	s.stop = func() {
		s.kill()
		if err := store.ForgetReplica(context.Background(), id); err != nil {
			t.Error(err)
		}
	}
	return s
}

// TestSessionAtEachReplica: RU-08: a session and its streams work at each replica, but only for its
// user.
func TestSessionAtEachReplica(t *testing.T) {
	all := serveReplicas(t, 3, Config{})
	holder, second, third := all[0], all[1], all[2]
	session := holder.open("2025-11-25")
	t.Run("RU-08 calls", func(t *testing.T) {
		for i, s := range append(all, all...) {
			a := s.post(toolCall(fmt.Sprint(i), "echo", ""), session...)
			a.result(t)
			if a.status != http.StatusOK || a.header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("got %d %v", a.status, a.header)
			}
		}
	})
	t.Run("RU-08 a notification", func(t *testing.T) {
		if a := second.post(`{"jsonrpc":"2.0","method":"notifications/x"}`, session...); a.status != 202 || a.body != "" {
			t.Errorf("got %d %s", a.status, a.body)
		}
	})
	t.Run("RU-08 its own stream, and its events at another replica", func(t *testing.T) {
		second.mark("file:///one", session...)
		second.mark("file:///two", session...)
		said := third.hear("file:///one", session...)
		_, id, _ := strings.Cut(said, "id: ")
		id, _, _ = strings.Cut(id, "\n")
		if again := second.hear("file:///two", append(session[:4:4], "Last-Event-Id", id)...); strings.Contains(again,
			"file:///one") {
			t.Errorf("it is reported again: %s", again)
		}
	})
	t.Run("RS-112, RU-08 another person's session is not found at any", func(t *testing.T) {
		for _, s := range all {
			for _, method := range []string{"POST", "GET", "DELETE"} {
				a, err := s.do(t.Context(), method, toolCall("1", "echo", ""), append(session[:4:4], "Who", "bob")...)
				if err != nil || a.status != http.StatusNotFound {
					t.Errorf("%s: %+v, %v", method, a, err)
				}
			}
		}
	})
	t.Run("RS-124, RU-08 the holder judges the version", func(t *testing.T) {
		a := second.post(toolCall("1", "echo", ""), "Mcp-Session-Id", session[1], "Mcp-Protocol-Version", "2025-06-18")
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "version") {
			t.Errorf("got %d %s", a.status, a.body)
		}
	})
	t.Run("RU-08 only the holder runs a program", func(t *testing.T) {
		for i, s := range all {
			s.mu.Lock()
			if want := map[int]int{0: 1}[i]; s.total != want {
				t.Errorf("replica %d runs %d", i, s.total)
			}
			s.mu.Unlock()
		}
	})
	t.Run("RU-08 it ends at any", func(t *testing.T) {
		a, err := third.do(t.Context(), http.MethodDelete, "", session...)
		if err != nil || a.status != http.StatusNoContent {
			t.Fatalf("%+v, %v", a, err)
		}
		for _, s := range all {
			if a := s.post(toolCall("1", "echo", ""), session...); a.status != http.StatusNotFound {
				t.Errorf("got %d %s", a.status, a.body)
			}
		}
	})
}

// TestSessionOfOneApplication: RU-08: if sessions belong to an application, the holder refuses
// other applications.
func TestSessionOfOneApplication(t *testing.T) {
	for _, per := range []bool{true, false} {
		all := serveReplicas(t, 2, Config{PerClient: per})
		session := all[0].open("2025-11-25")
		a := all[1].post(toolCall("1", "echo", ""), append(session[:4:4], "Client", "other")...)
		if want := map[bool]int{true: 404, false: 200}[per]; a.status != want {
			t.Errorf("RU-08 per client %v: got %d %s", per, a.status, a.body)
		}
	}
}

// TestHolderEnds: RU-08: a session ends with its holder. The next session is on a running replica.
func TestHolderEnds(t *testing.T) {
	for name, end := range map[string]func(*replicated){
		"stopped": func(r *replicated) { r.stop() },
		"killed":  func(r *replicated) { r.kill() },
	} {
		t.Run("RU-08 "+name, func(t *testing.T) {
			all := serveReplicas(t, 2, Config{})
			session := all[0].open("2025-11-25")
			all[1].post(toolCall("1", "echo", ""), session...).result(t)
			end(all[0])
			a := all[1].post(toolCall("2", "echo", ""), session...)
			if a.status != http.StatusNotFound || !strings.Contains(a.body, "Open a new session") {
				t.Errorf("got %d %s", a.status, a.body)
			}
			all[1].post(toolCall("3", "echo", ""), all[1].open("2025-11-25")...).result(t)
		})
	}
}

// TestHolderEndsInCall: RU-08: if the holder ends during a call, the call gets an error.
func TestHolderEndsInCall(t *testing.T) {
	all := serveReplicas(t, 2, Config{})
	session := all[0].open("2025-11-25")
	answered := make(chan *answer, 1)
	go func() {
		a, err := all[1].do(t.Context(), http.MethodPost, toolCall("5", "hang", ""), session...)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	wait.Until(t, "the program has the call", func() bool {
		x := all[0].find(session[1], alice)
		return x != nil && x.link.waiting() > 0
	})
	all[0].kill()
	if a := <-answered; !strings.Contains(a.body, `"id":5`) || !strings.Contains(a.body, `"error"`) {
		t.Errorf("got %d %s", a.status, a.body)
	}
}
