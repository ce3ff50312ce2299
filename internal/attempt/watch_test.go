package attempt

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/request"
)

// TestWatch: each step is reported once, in order, and a verdict when it is reached, including
// after silence. Earlier events are not reported.
func TestWatch(t *testing.T) {
	store, now, log := testStore(t), noon, &bytes.Buffer{}
	r := testRecorder(store, &now, log)
	record(r, Authorize, "192.0.2.1", 400, func(rec *request.Record) { rec.Asked(url.Values{"client_id": {"app"}}) })
	r.Write(t.Context())
	now = now.Add(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	tick, told := make(chan time.Time), []string{}
	done := make(chan error)
	var at atomic.Pointer[time.Time] // by the watcher's clock
	show := func() { moment := now; at.Store(&moment) }
	show()
	go func() {
		f := Finder{store, func() time.Time { return *at.Load() }}
		done <- f.Watch(ctx, Query{Client: "app"}, tick, func(n News) error {
			what := string(n.Attempt.Fault) + " of " + n.Attempt.ClientID
			if n.Step != nil {
				what = string(n.Step.Kind)
			}
			told = append(told, what)
			return nil
		})
	}()
	look := func(want ...string) {
		t.Helper()
		r.Write(t.Context())
		show()
		tick <- now
		tick <- now // the first read has ended when the second one begins
		if !slices.Equal(told, want) {
			t.Fatalf("OB-01: got %q, want %q", told, want)
		}
		told = told[:0]
	}
	tick <- now
	query := url.Values{"client_id": {"app"}, "state": {"s"}, "response_type": {"code"}}
	asked := func(rec *request.Record) { rec.Asked(query) }
	look()
	now = now.Add(time.Second)
	record(r, Authorize, "192.0.2.9", 200, asked)
	record(r, Authorize, "192.0.2.9", 400, func(rec *request.Record) {
		rec.Asked(url.Values{"client_id": {"other"}})
	})
	look("authorize")
	now = now.Add(time.Second)
	record(r, Consent, "192.0.2.9", 303, func(rec *request.Record) {
		asked(rec)
		rec.Sending("http://127.0.0.1/cb", url.Values{"code": {"the code"}})
	})
	look("consent")
	now = now.Add(quietClient - time.Second)
	look()
	now = now.Add(time.Second)
	look("code_not_redeemed of app")
	now = now.Add(time.Second)
	record(r, Token, "192.0.2.1", 200, func(rec *request.Record) {
		form := url.Values{"code": {"the code"}, "grant_type": {"authorization_code"}, "client_id": {"app"}}
		rec.Sent(form, form.Encode())
	})
	look("token", " of app")
	now = now.Add(2 * beside)
	look()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("OB-01: got %v when it was ended", err)
	}
}

// TestWatchSince: a watch with From starts with earlier events.
func TestWatchSince(t *testing.T) {
	store, now, log := testStore(t), noon, &bytes.Buffer{}
	r := testRecorder(store, &now, log)
	before := record(r, Authorize, "192.0.2.1", 400, nil)
	now = now.Add(time.Minute)
	after := record(r, Authorize, "192.0.2.2", 400, nil)
	r.Write(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	err := Finder{store, func() time.Time { return now }}.Watch(ctx, Query{From: now}, nil, func(n News) error {
		told = append(told, n.Attempt.Reference)
		if n.Step == nil {
			cancel()
		}
		return nil
	})
	if err != nil || !slices.Equal(told, []string{after, after}) {
		t.Errorf("OB-01: got %q, %v, want twice %s and not %s", told, err, after, before)
	}
}

// TestWatchOf tells of clients that were not known when the watch began (RU-18).
func TestWatchOf(t *testing.T) {
	store, now, log := testStore(t), noon, &bytes.Buffer{}
	r := testRecorder(store, &now, log)
	for _, id := range []string{"app_1", "other", "app_2"} {
		record(r, Authorize, "192.0.2.1", 400, func(rec *request.Record) { rec.Asked(url.Values{"client_id": {id}}) })
	}
	r.Write(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	q := Query{From: now, Of: func(_ context.Context, ids []string) (map[string]bool, error) {
		wanted := map[string]bool{}
		for _, id := range ids {
			wanted[id] = strings.HasPrefix(id, "app_")
		}
		return wanted, nil
	}}
	told := map[string]bool{}
	err := Finder{store, func() time.Time { return now }}.Watch(ctx, q, nil, func(n News) error {
		told[n.Attempt.ClientID] = true
		if n.Step == nil && len(told) == 2 {
			cancel()
		}
		return nil
	})
	if err != nil || told["other"] || !told["app_1"] || !told["app_2"] {
		t.Errorf("RU-18: got %v, %v", told, err)
	}
	broken := errors.New("the database is away")
	q.Of = func(context.Context, []string) (map[string]bool, error) { return nil, broken }
	if _, err := (Finder{store, func() time.Time { return now }}).Find(t.Context(), q); !errors.Is(err, broken) {
		t.Errorf("RU-18: got %v, want %v", err, broken)
	}
}

// TestWatchEnds when what is told cannot be taken, or the store fails.
func TestWatchEnds(t *testing.T) {
	store, now, log := testStore(t), noon, &bytes.Buffer{}
	r := testRecorder(store, &now, log)
	finder, tick := Finder{store, func() time.Time { return now }}, make(chan time.Time, 1)
	full := errors.New("the pipe is closed")
	tick <- now
	first := true
	f := finder
	f.Now = func() time.Time {
		if !first {
			record(r, Authorize, "192.0.2.1", 400, nil)
			r.Write(context.Background())
		}
		first = false
		return now
	}
	if err := f.Watch(t.Context(), Query{}, tick, func(News) error { return full }); !errors.Is(err, full) {
		t.Errorf("OB-01: got %v, want %v", err, full)
	}
	store.Close()
	if err := finder.Watch(t.Context(), Query{}, tick, nil); err == nil || strings.Contains(err.Error(), "context") {
		t.Errorf("OB-01: got %v of a store that is closed", err)
	}
}
