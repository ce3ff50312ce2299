package request_test

import (
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestRecord checks that a record is found by its context, that a later note replaces an earlier one
// with the same name, and that an event's own attributes win.
func TestRecord(t *testing.T) {
	at, from := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), netip.MustParseAddr("192.0.2.7")
	r := request.New("BCDFGHJK", at, from)
	if got := request.Of(r.Within(t.Context())); got != r {
		t.Fatal("the context carries another record")
	}
	r.Note(slog.String("client_id", "first"), slog.Group("", slog.String("user", "usr_1"), slog.String("empty", "")))
	r.Note(slog.String("client_id", "second"), slog.String("long", strings.Repeat("a", 10_000)))
	got := map[string]string{}
	for _, a := range r.Added([]slog.Attr{slog.String("user", "usr_2")}) {
		if _, twice := got[a.Key]; twice {
			t.Errorf("%s is there twice", a.Key)
		}
		got[a.Key] = a.Value.String()
	}
	if len(got) != 4 || got["request_id"] != "BCDFGHJK" || got["client_id"] != "second" || got["user"] != "usr_2" ||
		len(got["long"]) > 700 {
		t.Errorf("got %v", got)
	}
	if gotAt, gotFrom := r.Arrival(); gotAt != at || gotFrom != from {
		t.Errorf("got %s, %s", gotAt, gotFrom)
	}
}

// TestBounds checks that a client cannot fill a record by a request that is refused many times.
func TestBounds(t *testing.T) {
	r := request.New("BCDFGHJK", time.Time{}, netip.Addr{})
	for range 100 {
		r.Expect("redirect_uri", "a", []string{"b"})
	}
	if got := r.Seen().Expected; len(got) != 4 {
		t.Errorf("got %d", len(got))
	}
}

// TestNoRecord checks that work outside of a request needs no record.
func TestNoRecord(t *testing.T) {
	r := request.Of(t.Context())
	r.Note(slog.String("user", "usr_1"))
	r.Refuse(oauth.NewError(oauth.InvalidRequest, "no"))
	r.Sent(url.Values{}, "")
	own := []slog.Attr{slog.String("user", "usr_2")}
	if r != nil || r.Reference() != "" || r.Refusal() != nil || r.Seen().Params != nil || r.Attrs() != nil ||
		!slices.EqualFunc(r.Added(own), own, slog.Attr.Equal) || !r.ReferenceAttr().Equal(slog.Attr{}) {
		t.Errorf("got %v", r)
	}
}
