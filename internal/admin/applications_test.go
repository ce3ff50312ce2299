package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestApplications checks that an administrator acts on a whole application rather than its
// registrations (RU-18, EN-02). An ambiguous name must find none, and each refusal must say what to
// do.
func TestApplications(t *testing.T) {
	s, actor := two(t)
	ctx, root := t.Context(), s.As(actor("root"))
	register := func(id, name, redirect string) storage.Client {
		c := storage.Client{
			ID: id, Name: name, RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code"},
			AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: time.Now(),
		}
		if err := s.Store.PutClient(ctx, c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	claude := register("mcp_one", "Claude", "http://localhost:1/cb")
	register("mcp_two", "Claude", "http://127.0.0.1:2/cb")
	thief := register("mcp_three", "Claude", "https://thief.example/cb")
	id := func(name string) admin.ApplicationID { return admin.ApplicationID{ID: name} }
	refused := func(err, kind error, words ...string) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Fatalf("RU-18: got %v, want %v", err, kind)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("RU-18: %q does not say %q", err, w)
			}
		}
	}

	page, err := admin.ApplicationList.Do(ctx, root, admin.Searched{Match: "claude"})
	if err != nil || len(page.Items) != 2 {
		t.Fatalf("RU-18: %+v, %v", page, err)
	}
	for _, a := range page.Items {
		if a.Verified {
			t.Errorf("RU-18: a program that gave its own name is verified: %+v", a)
		}
	}
	_, err = admin.ApplicationBlock.Do(ctx, root, id("Claude"))
	refused(err, admin.ErrInvalid, "2 applications", "thief.example", "loopback", claude.Application())
	_, err = admin.ApplicationShow.Do(ctx, root, id("app_none"))
	refused(err, admin.ErrNotFound, "application list")

	blocked, err := admin.ApplicationBlock.Do(ctx, root, id("mcp_two"))
	if err != nil || blocked.State != "blocked" || blocked.Registrations != 2 {
		t.Fatalf("EN-02: %+v, %v", blocked, err)
	}
	_, err = admin.ApplicationBlock.Do(ctx, root, id(claude.Application()))
	refused(err, admin.ErrConflict, "held already")
	_, err = admin.ApplicationResume.Do(ctx, root, id(claude.Application()))
	refused(err, admin.ErrConflict, "not paused")
	if c, err := s.FindClient(ctx, "mcp_one"); err != nil || c.Name != "Claude" {
		t.Errorf("RU-18: the operator does not find a client of a blocked application: %+v, %v", c, err)
	}
	pair := admin.ApplicationPair{ApplicationID: id(thief.Application()), Into: claude.Application()}
	_, err = admin.ApplicationMerge.Do(ctx, root, pair)
	refused(err, admin.ErrConflict, "make them alike")
	if _, err := admin.ApplicationUnblock.Do(ctx, root, id(claude.Application())); err != nil {
		t.Fatal(err)
	}
	pair.ID = claude.Application()
	_, err = admin.ApplicationMerge.Do(ctx, root, pair)
	refused(err, admin.ErrConflict, "one application already")

	own := actor("root")
	own.ClientID = "mcp_one"
	_, err = admin.ApplicationBlock.Do(ctx, s.As(own), id("mcp_two"))
	refused(err, admin.ErrConflict, "the application by which you do this")
	_, err = admin.ApplicationPause.Do(ctx, s.As(own), id(thief.Application()))
	if err != nil {
		t.Errorf("EN-02: another application: %v", err)
	}
}
