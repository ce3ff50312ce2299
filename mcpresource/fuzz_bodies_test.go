package mcpresource

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
)

// steps are the input bytes of a fuzz target; they may run out at any point.
type steps struct{ left []byte }

func (s *steps) next(n int) int {
	if len(s.left) == 0 {
		return 0
	}
	b := s.left[0]
	s.left = s.left[1:]
	return int(b) % n
}

var fuzzTokens = []string{"alice@first", "alice@second", "bob@first", "admin", ""}

// bodyModel sends bodies in pieces, with other bodies in between.
type bodyModel struct {
	steps
	t *testing.T
	r *rig
	h http.Handler
}

// check compares the counted bytes with the limits.
func (m *bodyModel) check() {
	b := limits.UsageOf(m.r.c.Bodies)
	var sum int64
	for who, n := range b.Of {
		if sum += n; n <= 0 || n > b.Share {
			m.t.Fatalf("%s has %d bytes, which may be %d", who, n, b.Share)
		}
	}
	if sum != b.Total || b.Total > b.Most {
		m.t.Fatalf("%d bytes are counted, %d of persons, which may be %d", b.Total, sum, b.Most)
	}
}

// Read implements io.Reader: it is the body of every request.
func (m *bodyModel) Read(b []byte) (int, error) {
	m.check()
	switch m.next(8) {
	case 0:
		return 0, io.EOF
	case 1:
		return 0, io.ErrUnexpectedEOF
	case 2, 3:
		m.request()
		m.check()
	}
	n := min(len(b), 1+7*m.next(256))
	for i := range b[:n] {
		b[i] = ' '
	}
	return n, nil
}

func (m *bodyModel) request() {
	defer func() { _ = recover() }() // of the handler
	token := fuzzTokens[m.next(len(fuzzTokens))]
	body := io.Reader(m)
	if m.next(3) > 0 {
		body = io.MultiReader(strings.NewReader(tool("read")), m)
	}
	post(m.h, token, body)
}

// FuzzBodies: security M3. Whatever is sent, cut off or never finished, the counted bytes stay
// within their limits, and none stay counted.
func FuzzBodies(f *testing.F) {
	f.Add([]byte{0, 1, 4, 200, 5, 255, 0})
	f.Add([]byte("one body within another, and one more within that, cut off in the middle"))
	f.Add([]byte{2, 1, 2, 3, 1, 7, 255, 2, 0, 1, 6, 250, 1, 0, 3, 4, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newRig(t, func(c *Config) {
			through(c)
			publicly(c)
			c.MaxBodyBytes, c.Bodies, c.Limits.Concurrent, c.Limits.Calls.PerSecond = 2000, NewBodies(8000), 4, -1
		})
		m := &bodyModel{steps: steps{b}, t: t, r: r}
		m.h = r.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			m.check()
			if m.next(3) == 1 {
				panic(http.ErrAbortHandler)
			}
		}))
		for len(m.left) > 0 {
			m.request()
		}
		if left := limits.UsageOf(r.c.Bodies); left.Total != 0 || len(left.Of) != 0 || r.load.underway.Len() != 0 {
			t.Errorf("%d bytes are still counted, of %v, %v under way", left.Total, left.Of, r.load.underway.Len())
		}
	})
}
