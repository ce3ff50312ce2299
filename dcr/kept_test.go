package dcr

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// OB-11: the state of a metadata document can be shown: when it was read, its content, and when and
// why a later fetch failed.
func TestDocumentAsLastRead(t *testing.T) {
	now := time.Now()
	s := newSite(t)
	r, _ := documentRegistry(t, func() time.Time { return now })
	if d, ok := r.Document(s.id()); ok {
		t.Fatalf("before it was read: %+v", d)
	}
	s.say(goodDocument+`,"client_uri":"https://a.example/`+"\u202e\"", "Cache-Control", "max-age=600")
	if _, err := r.Fetch(t.Context(), s.id()); err != nil {
		t.Fatal(err)
	}
	d, ok := r.Document(s.id())
	if !ok || !d.ReadAt.Equal(now) || !d.ReadAgainAt.Equal(now.Add(10*time.Minute)) || len(d.SHA256) != 64 ||
		d.Problem != "" || !d.FailedAt.IsZero() || !strings.Contains(d.Text, `"client_name":"Doc"`) ||
		d.Size < len(d.Text) {
		t.Errorf("OB-11: got %+v", d)
	}
	s.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	read := now
	now = now.Add(time.Hour)
	_, _ = r.Fetch(t.Context(), s.id())
	d, _ = r.Document(s.id())
	if !d.ReadAt.Equal(read) || !d.FailedAt.Equal(now) || !strings.Contains(d.Failure, "502") {
		t.Errorf("OB-11: after it was unavailable: %+v", d)
	}
	s.say(`"client_name":"Doc","redirect_uris":["http://evil.example/cb"]`)
	now = now.Add(time.Hour)
	_, _ = r.Fetch(t.Context(), s.id())
	d, _ = r.Document(s.id())
	if !strings.Contains(d.Problem, "redirect_uris") || !d.FailedAt.IsZero() || !strings.Contains(d.Text, "evil") {
		t.Errorf("OB-11: after it was invalid: %+v", d)
	}
}

// OB-11: the text kept of a document is bounded and free of misleading characters.
func TestDocumentText(t *testing.T) {
	got := textOf([]byte("{\n\t\"a\": \"x\u202ey\x1b[31m\xff\"}" + strings.Repeat(" ", 9000)))
	if len(got.begin) > maxDocumentText || !strings.HasPrefix(got.begin, "{\n\t\"a\": \"xy[31m\"}") || got.size < 9000 {
		t.Errorf("OB-11: got %d bytes, %.40q of %d", len(got.begin), got.begin, got.size)
	}
}

// OB-11: the matching rule of the trust policy is reported.
func TestDocumentRule(t *testing.T) {
	p := TrustPolicy{Allow: []string{"a.example", "*.b.example"}, Deny: []string{"bad.b.example"}}
	for id, want := range map[string][2]string{
		"https://a.example/c": {"allow", "a.example"}, "https://x.b.example/c": {"allow", "*.b.example"},
		"https://bad.b.example/c": {"deny", "bad.b.example"}, "https://c.example/c": {"ask", ""}, "%": {"deny", ""},
	} {
		if trust, pattern := p.rule(id); string(trust) != want[0] || pattern != want[1] {
			t.Errorf("OB-11: %s: got %s by %q, want %v", id, trust, pattern, want)
		}
	}
}
