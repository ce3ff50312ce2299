package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		write func(http.ResponseWriter)
		want  int
	}{
		"nothing":         {func(http.ResponseWriter) {}, 0},
		"a body":          {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") }, 200},
		"the first one":   {func(w http.ResponseWriter) { w.WriteHeader(403); _, _ = io.WriteString(w, "x") }, 403},
		"early hints":     {func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(404) }, 404},
		"a flush":         {func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, 200},
		"by a controller": {func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, 200},
		"a copy":          {func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("x")) }, 200},
	} {
		w := httptest.NewRecorder()
		a := &Answer{ResponseWriter: w}
		c.write(a)
		if a.Status != c.want || c.want == 200 && w.Code != c.want {
			t.Errorf("%s: got %d, sent %d, want %d", name, a.Status, w.Code, c.want)
		}
	}
}

func TestAnswerHeldBack(t *testing.T) {
	w, asked := httptest.NewRecorder(), 0
	a := &Answer{ResponseWriter: w, Begin: func() bool { asked++; return false }}
	a.WriteHeader(http.StatusCreated)
	n, err := io.WriteString(a, "secret")
	a.Flush()
	if n != 6 || err != nil || w.Body.Len() > 0 || w.Flushed || asked != 3 || a.Status != 0 {
		t.Errorf("got %d, %v, %q, flushed %t, asked %d times, status %d", n, err, w.Body, w.Flushed, asked, a.Status)
	}
}

// The writer of net/http takes deadlines and flushes through an Answer.
func TestAnswerOfAServer(t *testing.T) {
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a := &Answer{ResponseWriter: &Answer{ResponseWriter: w}}
		if err := http.NewResponseController(a).SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(a, "one")
		if err := a.FlushError(); err != nil {
			t.Error(err)
		}
		<-done
	}))
	defer s.Close()
	res, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 3)); err != nil {
		t.Errorf("the first part is not there while the handler runs: %v", err)
	}
	close(done)
}
