package statuslist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
)

// site serves unsigned status lists without a network, with the clock of the test.
type site struct {
	polls atomic.Int32
	slow  time.Duration
	bits  atomic.Uint32 // one byte of the list
}

// RoundTrip implements http.RoundTripper.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.polls.Add(1)
	wait.Advance(s.slow)
	body := encode(
		listClaims(time.Now(), "sub", r.URL.String(), "status_list",
			map[string]any{"bits": 1, "lst": pack([]byte{byte(s.bits.Load())})}),
	)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}, nil
}

func (s *site) lists() *Lists {
	return New(Config{
		Issuer: authServer,
		Client: &http.Client{Transport: s},
		Verify: func(_ context.Context, token, _ string) ([]byte, error) { return []byte(token), nil },
		Skew:   30 * time.Second,
		Stale:  5 * time.Minute,
		Now:    time.Now,
		Log:    slog.New(slog.DiscardHandler),
	})
}

// place returns entry 3 of list n.
func place(t *testing.T, s *Lists, n int) *Place {
	t.Helper()
	claim := fmt.Sprintf(`{"status_list":{"idx":3,"uri":"%s/status/%d"}}`, authServer, n)
	p, err := s.Place(json.RawMessage(claim), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLists(t *testing.T) {
	run := func(name string, f func(*testing.T, *site, *Lists)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{}
				f(t, s, s.lists())
			})
		})
	}
	run("RS-51 a list that is not kept any more stays forgotten", func(t *testing.T, s *site, lists *Lists) {
		s.slow = time.Second
		p := lists.poller(listURI, time.Now())
		go func() {
			wait.Advance(s.slow / 2)
			p.retire()
		}()
		if l, err := p.current(t.Context(), time.Now()); l == nil || err != nil {
			t.Errorf("who waits for it: got %v", err)
		}
		if p.list.Load() != nil {
			t.Error("it was kept")
		}
	})
	run("RS-44 who looked before the answer came asks no second time", func(t *testing.T, s *site, lists *Lists) {
		if err := place(t, lists, 0).Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		late, err := lists.poller(listURI, time.Now()).ask(t.Context(), nil)
		if n := s.polls.Load(); n != 1 || late == nil || err != nil {
			t.Errorf("asked %d times; %v", n, err)
		}
	})
	run("RS-51 so many lists are kept, those that are watched longest", func(t *testing.T, s *site, lists *Lists) {
		var cause error
		stop := place(t, lists, 0).Watch(func(err error) { cause = err })
		defer stop()
		for n := range 2 * maxLists {
			if err := place(t, lists, n+1).Check(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(lists.pollers); n != maxLists || lists.pollers[listURI] == nil || cause != nil {
			t.Errorf("%d are kept, the watched one ended by %v", n, cause)
		}
	})
	run("RS-44 a watch is kept until it ends", func(t *testing.T, s *site, lists *Lists) {
		causes := make(chan error, 2)
		place(t, lists, 0).Watch(func(err error) { causes <- err })
		stop := place(t, lists, 0).Watch(func(err error) { causes <- err })
		wait.Advance(time.Second)
		stop()
		s.bits.Store(0xff)
		if err := <-causes; !errors.Is(err, ErrRevoked) {
			t.Errorf("ended by %v", err)
		}
		wait.Advance(time.Hour)
		if n := len(lists.pollers[listURI].watches); n != 0 || len(causes) != 0 {
			t.Errorf("%d are watched, and %d more ended", n, len(causes))
		}
	})
}

// TestRedirectedList: RS-44. A list is only fetched from the token's URL at the issuer.
func TestRedirectedList(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			t.Error("the redirect was followed")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer h.Close()
	lists := New(Config{Issuer: h.URL, Client: issuer.Client(nil), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	p, err := lists.Place(json.RawMessage(`{"status_list":{"idx":3,"uri":"`+h.URL+`/status/0"}}`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("got %v", err)
	}
	for claim, want := range map[string]error{
		`{"status_list":{"idx":3,"uri":"https://evil.example.com/status/0"}}`: errElsewhere,
		`{"status_list":{"uri":"` + h.URL + `/status/0"}}`:                    errMalformed,
	} {
		if _, err := lists.Place(json.RawMessage(claim), time.Now()); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", claim, err, want)
		}
	}
}
