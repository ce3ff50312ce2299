package assembly

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestConsoleMergesApplications: OB-10, RU-18: the console shows both applications before it merges them, with what
// depends on them, and splits what was merged.
func TestConsoleMergesApplications(t *testing.T) {
	s := consoled(t, nil)
	client := func(id, name, redirect string) string {
		c := storage.Client{
			ID: id, Name: name, RedirectURIs: []string{redirect}, Source: storage.SourceDynamic,
			AuthMethod: "none", CreatedAt: time.Now(),
		}
		if err := s.parts.Store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return c.Application()
	}
	notes := client("mcp_notes", "Notes", "https://notes.example/cb")
	other := client("mcp_other", "Notes Pro", "https://other.example/cb")
	b := browse(t, s.Handler())
	at := "?" + url.Values{"id": {notes}}.Encode()
	p := b.at("/admin/application/list", "alice")
	wantPage(t, p, 200, "/admin/application/list", "/admin/application/merge"+at)
	p = b.get("/admin/application/show" + at)
	wantPage(t, p, 200, "/admin/application/show", "/admin/application/merge"+at)
	if strings.Contains(p.body, "/admin/application/split") {
		t.Error("OB-10: an application that counts as no other one can be split")
	}
	form := b.get("/admin/application/merge" + at)
	wantPage(t, b.send(form, "/admin/application/merge", "into", "Unknown"), 404, "/admin/application/merge", "Unknown")
	wantPage(t, b.send(form, "/admin/application/merge", "into", "mcp_notes"), 409, "/admin/application/merge",
		"one application already")
	ask := b.send(form, "/admin/application/merge", "into", "Notes Pro")
	wantPage(t, ask, 200, "/admin/application/merge", "“Notes” (unverified) at https://notes.example with 0 grants of 0 users",
		"“Notes Pro” (unverified) at https://other.example with 0 grants of 0 users and 1 registration")
	if a, err := s.parts.Store.FiledApplication(t.Context(), other); err != nil || len(a.Merged) > 0 {
		t.Fatalf("OB-10: merged before it was confirmed: %+v, %v", a, err)
	}
	// The form is bound to the two that were shown.
	p = b.send(ask, "/admin/application/merge", "into", "mcp_notes")
	wantPage(t, p, 200, "/admin/application/show", "Merged into it", "was merged.")
	if a, err := s.parts.Store.FiledApplication(t.Context(), notes); err != nil || a.Key != other {
		t.Fatalf("OB-10: got %+v, %v", a, err)
	}
	split := "/admin/application/split" + at
	wantPage(t, p, 200, "/admin/application/show", split, "“<bdi>Notes</bdi>”")
	b.send(b.get(split), "/admin/application/split")
	if a, err := s.parts.Store.FiledApplication(t.Context(), notes); err != nil || a.Key != notes {
		t.Fatalf("OB-10: got %+v, %v", a, err)
	}
}
