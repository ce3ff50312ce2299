package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func testStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s := installation.Store(t)
	return s
}

func testRecorder(s storage.Attempts, now *time.Time, log *bytes.Buffer) *Recorder {
	return NewRecorder(Config{
		Store: s,
		Key:   bytes.Repeat([]byte{1}, 32),
		Now:   func() time.Time { return *now },
		Log:   slog.New(slog.NewTextHandler(log, nil)),
	})
}

// record records one request of a client at an address.
func record(r *Recorder, kind Kind, from string, status int, note func(*request.Record)) string {
	req := httptest.NewRequest("GET", "/x", nil)
	req.Header.Set("User-Agent", "a-client/1")
	rec := request.New(NewReference(), r.c.Now(), netip.MustParseAddr(from))
	if note != nil {
		note(rec)
	}
	r.End(req, rec, Taken{Kind: kind, Path: "/x", Answer: Answer{Status: status}})
	return rec.Reference()
}

// TestApart: two concurrent attempts of one client are not joined, in any order of their steps.
func TestApart(t *testing.T) {
	var steps []Step
	for i := range 2 {
		at := noon.Add(time.Duration(i) * time.Second)
		thread := fmt.Sprint("t", i)
		steps = append(steps,
			Step{
				Reference: thread + "a", At: at, Kind: Authorize,
				Keys: Keys{Client: "app", Thread: thread, Address: "192.0.2.1"},
			},
			Step{
				Reference: thread + "b", At: at.Add(time.Minute), Kind: Consent,
				Keys: Keys{Client: "app", Thread: thread, Code: thread},
			},
			Step{
				Reference: thread + "c", At: at.Add(2 * time.Minute), Kind: Token, Answer: Answer{Status: 200},
				Keys: Keys{Client: "app", Code: thread, Address: "192.0.2.1"},
			})
	}
	want := Join(steps, noon)
	slices.Reverse(steps)
	for _, got := range [][]Attempt{want, Join(steps, noon)} {
		if len(got) != 2 || len(got[0].Steps) != 3 || got[0].ID != want[0].ID {
			t.Errorf("OB-01: got %+v", got)
		}
	}
}

// TestFoundByNameOfClient: self-registered clients have many IDs and one name.
func TestFoundByNameOfClient(t *testing.T) {
	now, store := noon, testStore(t)
	r := testRecorder(store, &now, new(bytes.Buffer))
	for i, name := range []string{"Claude", "Claude", "Other", "Claude"} {
		now = now.Add(time.Minute)
		record(r, Registration, fmt.Sprintf("192.0.2.%d", i), 201, func(rec *request.Record) {
			rec.Registered(fmt.Sprint("mcp_", i), name)
		})
	}
	r.Write(context.Background())
	f := Finder{Store: store, Now: func() time.Time { return now }}
	for want, q := range map[int]Query{
		3: {Client: "mcp_1", ClientName: "claude"}, // one of them is in the store
		2: {Client: "claude", ClientName: "claude", From: noon.Add(90 * time.Second)},
		1: {Client: "mcp_2", ClientName: "mcp_2"},
		0: {Client: "nobody", ClientName: "nobody"},
	} {
		got, err := f.Find(context.Background(), q)
		if err != nil || len(got) != want {
			t.Errorf("OB-02: %+v: got %d, %v, want %d", q, len(got), err, want)
		}
	}
}

// TestReportsTakeNothing: many reports of a resource server about a network do not displace the
// network's own steps.
func TestReportsTakeNothing(t *testing.T) {
	now, store := noon, testStore(t)
	r := testRecorder(store, &now, new(bytes.Buffer))
	refused := oauth.Decision{
		Reference:  "R",
		At:         now,
		Resource:   "https://rs.example/mcp",
		HTTPMethod: "POST",
		Status:     401,
		Sender:     &oauth.Sender{Address: "192.0.2.9", Agent: "made-up"},
	}
	for range 2 * callsPerNetwork.Burst {
		r.Reported("hostile", refused, Presented{State: TokenNone}, nil)
	}
	own := refused
	own.Sender, own.Reference = nil, "OWN"
	r.Refused(httptest.NewRequest("POST", "/mcp", nil), netip.MustParseAddr("192.0.2.1"), own,
		Presented{State: TokenNone}, nil)
	r.Write(context.Background())
	got, err := Finder{Store: store, Now: func() time.Time { return now }}.Find(context.Background(),
		Query{Reference: "OWN"})
	if err != nil || len(got) != 1 {
		t.Errorf("OB-01: got %d, %v", len(got), err)
	}
}

// TestBounds: a hostile client can cause only a bounded number of stored steps.
func TestBounds(t *testing.T) {
	store, now, log := testStore(t), noon, &bytes.Buffer{}
	r := testRecorder(store, &now, log)
	for range perAgent.Burst + 10 {
		record(r, Authorize, "192.0.2.1", 400, func(rec *request.Record) {
			values := url.Values{"client_id": {strings.Repeat("c", 9000)}, "scope": {strings.Repeat("\x1b[2J", 3000)}}
			for i := range 500 {
				values.Add("resource", fmt.Sprintf("https://%d.example.com/%s", i, strings.Repeat("x", 300)))
			}
			rec.Sent(values, values.Encode())
			rec.Expect("redirect_uri", strings.Repeat("a", 5000), []string{strings.Repeat("b", 5000)})
		})
	}
	reference := record(r, Authorize, "198.51.100.1", 400, nil)
	r.Write(context.Background())
	if !strings.Contains(log.String(), "lost=10") {
		t.Errorf("OB-01: the loss is not logged: %s", log)
	}
	steps, err := store.Steps(context.Background(), storage.StepQuery{Until: noon.Add(time.Hour), Limit: 1000})
	if err != nil || len(steps) != perAgent.Burst+1 {
		t.Fatalf("OB-01: got %d steps, %v", len(steps), err)
	}
	for _, s := range steps {
		if len(s.Body) > maxStep {
			t.Errorf("OB-01: a step of %d bytes", len(s.Body))
		}
		for _, k := range s.Keys {
			if len(k) > 100 {
				t.Errorf("OB-01: a key of %d bytes", len(k))
			}
		}
		if got := s.KeptUntil.Sub(s.At); got != DefaultKeep {
			t.Errorf("OB-01: kept for %s", got)
		}
	}
	if s := steps[0]; !slices.Contains(s.Keys, keyReference+reference) {
		t.Error("OB-01: another network loses its steps")
	}
	many := make([]Step, 100)
	for i := range many {
		many[i] = Step{At: noon.Add(time.Duration(i)), Reference: fmt.Sprint(i), Keys: Keys{Thread: "t"}}
	}
	if got := Join(many, noon)[0]; len(got.Steps) != maxSteps || got.LeftOut != 100-maxSteps {
		t.Errorf("OB-01: got %d steps of one attempt, %d left out", len(got.Steps), got.LeftOut)
	}
}

// TestWhatTheStoreDoesNotTake: steps are lost when the store fails, but no request fails.
func TestWhatTheStoreDoesNotTake(t *testing.T) {
	store, now, log := testStore(t), noon, &bytes.Buffer{}
	r := testRecorder(store, &now, log)
	record(r, Authorize, "192.0.2.1", 200, nil)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	r.Write(context.Background())
	if !strings.Contains(log.String(), "lost=1") {
		t.Errorf("got %s", log)
	}
}

func TestReference(t *testing.T) {
	for range 100 {
		r := NewReference()
		typed := strings.ToLower(r[:4] + "-" + r[4:])
		if got, ok := ParseReference(" " + typed); !ok || got != r {
			t.Fatalf("OB-02: %q: got %q, %v", typed, got, ok)
		}
		if got, ok := ParseReference(idPrefix + r); !ok || got != r {
			t.Fatalf("OB-02: the id of %q: got %q, %v", r, got, ok)
		}
	}
	for _, bad := range []string{"", "ABCDEFGH", "2345678", "234567890", "2345678\n0", "2345678O"} {
		if got, ok := ParseReference(bad); ok {
			t.Errorf("OB-02: %q is the reference %q", bad, got)
		}
	}
}

func TestDiffer(t *testing.T) {
	for _, tt := range []struct {
		got, want string
		at        int
	}{
		{"https://a/cb", "https://a/cb/", 12}, {"https://a/cb/", "https://a/cb", 12},
		{"http://localhost/cb", "http://127.0.0.1/cb", 7}, {"", "x", 0},
	} {
		if d := Differ(tt.got, tt.want); d == nil || d.At != tt.at {
			t.Errorf("OB-01: %q and %q: got %+v, want byte %d", tt.got, tt.want, d, tt.at)
		}
	}
	if d := Differ("same", "same"); d != nil {
		t.Errorf("OB-01: got %+v for equal strings", d)
	}
	near := Nearest("http://127.0.0.1:1/a", []string{"https://x.example/a", "http://127.0.0.1:1/b"})
	if near == nil || near.At != 19 {
		t.Errorf("OB-01: the nearest: got %+v", near)
	}
	d := compared("https://a/cb?t=secret", []string{"https://a/cb?t=other"})
	if d == nil || strings.Contains(d.Got, "secret") {
		t.Errorf("OB-01: got %+v", d)
	}
}

// TestDescribed: an address quoted in a description is cut after its path.
func TestDescribed(t *testing.T) {
	got := Described(`The redirect URI "https://u:secret@a.example/cb?t=secret#secret" is not registered.`)
	if strings.Contains(got, "secret") || !strings.Contains(got, "a.example/cb") {
		t.Errorf("OB-01: got %s", got)
	}
}

// FuzzRedact: any stored value is valid UTF-8, bounded, and contains no part of a secret.
func FuzzRedact(f *testing.F) {
	f.Add("state", "x"+strings.Repeat("S", 30))
	f.Add("unheard_of", "\xff\x00")
	f.Add("redirect_uri", "https://a/?"+strings.Repeat("S", 30))
	f.Fuzz(func(t *testing.T, name, v string) {
		values := url.Values{name: {v}, "code_verifier": {strings.Repeat("S", 43)}}
		kept := Digester("k").Redact(values, order(values.Encode()))
		b, err := json.Marshal(kept)
		if err != nil || len(kept) > maxParams+1 || len(b) > 4000 {
			t.Fatalf("got %d parameters, %d bytes, %v", len(kept), len(b), err)
		}
		shown := slices.Contains(plain, name) || slices.Contains(addresses, name)
		if !shown && strings.Contains(string(b), strings.Repeat("S", 43)) {
			t.Errorf("the verifier is kept: %s", b)
		}
	})
}

// TestOrderOfParameters: the order of parameters identifies a client and is preserved.
func TestOrderOfParameters(t *testing.T) {
	now, store := noon, testStore(t)
	r := testRecorder(store, &now, new(bytes.Buffer))
	const query = "state=s&client_id=app&odd=1&scope=a&redirect_uri=http%3A%2F%2F127.0.0.1%2Fcb&response_type=code"
	values, err := url.ParseQuery(query)
	check(t, err)
	record(r, Authorize, "192.0.2.1", 200, func(rec *request.Record) {
		rec.Sent(values, query)
		rec.Asked(values) // as in later handling
	})
	r.Write(t.Context())
	found, err := Finder{Store: store, Now: func() time.Time { return now }}.Find(t.Context(), Query{})
	check(t, err)
	var names []string
	for _, p := range found[0].Steps[0].Request.Params {
		names = append(names, p.Name)
	}
	want := []string{"state", "client_id", "scope", "redirect_uri", "response_type", others}
	if !slices.Equal(names, want) {
		t.Errorf("OB-01: got %v, want %v", names, want)
	}
}

// TestFlood: OB-01. 50,000 attempts from as many networks need a bounded amount of memory. The
// queue holds at most the steps that are written in some seconds.
func TestFlood(t *testing.T) {
	now, log := noon, &bytes.Buffer{}
	r := testRecorder(testStore(t), &now, log)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 50_000 {
		from := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
		if i%2 == 0 {
			from = fmt.Sprintf("2001:db8:%x::1", i)
		}
		values := url.Values{"client_id": {strings.Repeat("c", 500)}, "state": {fmt.Sprint(i)}, "scope": {"a"}}
		record(r, Authorize, from, 400, func(rec *request.Record) { rec.Asked(values) })
		if i > maxAfter+10 {
			continue
		}
		record(r, Token, from, 200, func(rec *request.Record) {
			rec.Sent(url.Values{"grant_type": {"refresh_token"}}, "grant_type=refresh_token")
		})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := len(r.queue); n > maxQueue || len(r.after) > maxAfter {
		t.Errorf("OB-01: %d steps wait, and %d refreshes", n, len(r.after))
	}
	const most = 32 << 20
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > most {
		t.Errorf("OB-01: the heap has grown by %d bytes", grown)
	}
	if r.write(t.Context()); !strings.Contains(log.String(), "lost=") {
		t.Errorf("OB-01: got %s, want how much is lost", log)
	}
}
