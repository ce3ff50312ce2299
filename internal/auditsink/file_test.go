package auditsink

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/auditformat"
)

func entries(from, n int64) (out []auditformat.Entry) {
	for i := range n {
		e := verify.Entry{Event: "login.succeeded", Fields: map[string]string{"user_name": "alice"}}
		out = append(out, auditformat.Entry{Entry: e, Index: from + i, Leaf: verify.LeafHash(e.Leaf())})
	}
	return out
}

var asJSON = writer{format: auditformat.JSON, source: auditformat.Source{Issuer: "https://auth.example.com"}}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFile(t *testing.T) {
	now := time.Date(2026, 3, 1, 23, 59, 59, 0, time.UTC)
	clock := func() time.Time { return now }
	line := int64(len(asJSON.lines(entries(0, 1))))
	in := func(t *testing.T, r Rotation) *file {
		r.Path = filepath.Join(t.TempDir(), "audit.jsonl")
		return newFile(asJSON, r, clock)
	}
	put := func(t *testing.T, f *file, from, n int64) {
		t.Helper()
		if err := f.Deliver(t.Context(), entries(from, n)); err != nil {
			t.Fatal(err)
		}
	}
	names := func(t *testing.T, f *file) string {
		t.Helper()
		all, err := f.replaced()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, " ")
	}
	t.Run("OB-06: lines are appended, for the owner alone", func(t *testing.T) {
		f := in(t, Rotation{})
		put(t, f, 0, 2)
		put(t, f, 2, 1)
		if got, want := read(t, f.Path), string(asJSON.lines(entries(0, 3))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if info, err := os.Stat(f.Path); err != nil || info.Mode() != 0o600 {
			t.Errorf("got %v, %v", info.Mode(), err)
		}
	})
	t.Run("OB-06: a file that is too long is replaced, and the oldest are removed", func(t *testing.T) {
		f := in(t, Rotation{MaxSize: 2 * line, Keep: 2})
		for i := range int64(7) {
			now = now.Add(time.Millisecond)
			put(t, f, i, 1)
		}
		stranger := f.Path + ".gz"
		if err := os.WriteFile(stranger, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(names(t, f), "audit.jsonl.2026"); got != 2 || len(read(t, f.Path)) != int(line) {
			t.Errorf("got %s", names(t, f))
		}
		all, err := os.ReadDir(filepath.Dir(f.Path))
		if err != nil || len(all) != 4 {
			t.Errorf("got %v, %v", all, err)
		}
	})
	t.Run("OB-06: a file has entries of one period", func(t *testing.T) {
		f := in(t, Rotation{Every: 24 * time.Hour})
		put(t, f, 0, 1)
		if err := os.Chtimes(f.Path, now, now); err != nil {
			t.Fatal(err)
		}
		put(t, f, 1, 1)
		if err := os.Chtimes(f.Path, now, now); err != nil {
			t.Fatal(err)
		}
		now = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
		put(t, f, 2, 1)
		if got, want := names(t, f), "audit.jsonl.20260302T000000.000Z"; got != want ||
			read(t, f.Path) != string(asJSON.lines(entries(2, 1))) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("OB-06: a line that the end of a process has torn is not left", func(t *testing.T) {
		f := in(t, Rotation{})
		put(t, f, 0, 1)
		torn, err := os.OpenFile(f.Path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = torn.WriteString(`{"index":1,"at":"20`)
			torn.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		put(t, f, 1, 1)
		if got, want := read(t, f.Path), string(asJSON.lines(entries(0, 2))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("OB-06: another program may move the file away", func(t *testing.T) {
		f := in(t, Rotation{})
		put(t, f, 0, 1)
		if err := os.Rename(f.Path, f.Path+".1"); err != nil {
			t.Fatal(err)
		}
		put(t, f, 1, 1)
		if got, want := read(t, f.Path), string(asJSON.lines(entries(1, 1))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("OB-06: what is no file of lines is left as it is", func(t *testing.T) {
		f := in(t, Rotation{})
		other := bytes.Repeat([]byte{7}, maxLine+1)
		if err := os.WriteFile(f.Path, other, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.Deliver(t.Context(), entries(0, 1)); err == nil || !strings.Contains(err.Error(), "has no lines") {
			t.Errorf("got %v", err)
		}
		f.Path = "/dev/null"
		if err := f.Deliver(t.Context(), entries(0, 1)); err == nil || !strings.Contains(err.Error(), "be a file") {
			t.Errorf("got %v", err)
		}
	})
}

// TestStream checks that a stream gets lines, and that an unread stream times out and blocks no
// other destination (OB-06).
func TestStream(t *testing.T) {
	var out bytes.Buffer
	s := newStream(asJSON, &out)
	if err := s.Deliver(t.Context(), entries(0, 2)); err != nil || out.String() != string(asJSON.lines(entries(0, 2))) {
		t.Errorf("got %v, %s", err, out.String())
	}
	_, stuck := io.Pipe()
	s = newStream(asJSON, stuck)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		err := s.Deliver(ctx, entries(0, 1))
		if err == nil || !strings.Contains(err.Error(), "nothing reads the stream") {
			t.Errorf("got %v", err)
		}
		cancel()
	}
}

// TestKinds checks that a destination of each known kind can be created (OB-06).
func TestKinds(t *testing.T) {
	o := Options{Log: slog.New(slog.DiscardHandler), Now: time.Now, Stdout: io.Discard}
	for _, k := range Kinds {
		o.Sinks = append(o.Sinks, Config{ID: "of-kind-" + string(k), Kind: k})
	}
	if d, err := New(o); err != nil || len(d.lines) != len(Kinds) {
		t.Errorf("got %v", err)
	}
	o.Sinks = []Config{{ID: "a", Kind: "pigeon"}}
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), `audit sink a: unknown kind "pigeon"`) {
		t.Errorf("got %v", err)
	}
}
