package assembly

import (
	"context"
	"html"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// twoReplicas returns two servers of one database with an adjustable clock, after applying change
// to their configuration. at contains one user's browser at each server, as if a proxy sent a
// single browser to both.
func twoReplicas(t *testing.T, change func(*config.Loaded)) (s *Server, clock *aging, at [2]*browser) {
	t.Helper()
	parts := consoled(t, change).parts
	clock = &aging{Store: parts.Store}
	parts.Store = clock
	for i := range at {
		server, err := parts.Server(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		s, at[i] = server, browse(t, server.Handler())
		at[i].c = at[0].c
	}
	return s, clock, at
}

// TestConsoleFormsAreSentOnce checks that a form runs once on all replicas (OB-10). Users who send
// it again learn that it was done, and where. A refused form can be corrected and sent again.
func TestConsoleFormsAreSentOnce(t *testing.T) {
	t.Parallel()
	s, clock, at := twoReplicas(t, nil)
	one, other := at[0], at[1]
	ask := one.at("/admin/user/disable?name=bob", "alice")
	wantPage(t, one.send(ask, "/admin/user/disable"), 200, "/admin/user/show?name=bob", "bob is disabled.")
	if err := s.Auth.Users().Enable(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	for _, b := range at {
		wantPage(t, b.send(ask, "/admin/user/disable"), 200, "/admin/user/disable", "Already done",
			"bob is disabled.", `href="/admin/user/show?name=bob"`)
	}
	if u, _ := s.Auth.Users().Find(t.Context(), "bob"); u.Disabled {
		t.Error("OB-10: a form was carried out twice")
	}

	ask = one.get("/admin/user/add")
	short := one.send(ask, "/admin/user/add", "name", "dora", "password", "short", "mail", "d@example.com")
	wantPage(t, short, 400, "/admin/user/add", `value="d@example.com"`)
	wantPage(t, other.send(short, "/admin/user/add", "name", "dora", "password", passphrase), 200,
		"/admin/user/show?name=dora", "The account was created.")
	wantPage(t, one.send(ask, "/admin/user/add", "name", "erin", "password", passphrase), 200, "/admin/user/add",
		"Already done", `href="/admin/user/show?name=dora"`)

	ask = one.get("/admin/user/recover?name=carol")
	first := one.send(ask, "/admin/user/recover")
	second := other.send(ask, "/admin/user/recover")
	wantPage(t, second, 200, "/admin/user/recover", "Already done")
	if link := linkIn(first); link == "" || linkIn(second) != link {
		t.Errorf("OB-10: the answer to a second click has the link %q, want %q", linkIn(second), linkIn(first))
	}
	clock.by.Store(int64(11 * time.Second))
	late := other.send(ask, "/admin/user/recover")
	wantPage(t, late, 200, "/admin/user/recover", "cannot be shown again")
	if linkIn(late) != "" {
		t.Error("OB-10: a link is shown again when it is not a second click")
	}
}

var oneTimeLink = regexp.MustCompile(`<code>(http[^<]*/link[^<]*)</code>`)

func linkIn(p page) string {
	if m := oneTimeLink.FindStringSubmatch(p.body); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

// TestConsoleDoubleClick checks that a form sent twice concurrently, to two replicas, runs once
// (OB-10). Both responses must contain the secret that it created.
func TestConsoleDoubleClick(t *testing.T) {
	t.Parallel()
	s, _, at := twoReplicas(t, nil)
	ask := at[0].at("/admin/client/add", "alice")
	var all sync.WaitGroup
	answers := make(chan page, 8)
	for i := range cap(answers) {
		all.Go(func() {
			answers <- at[i%2].send(ask, "/admin/client/add", "name", "machine", "auth_method", "client_secret_basic",
				"grant_types", "client_credentials")
		})
	}
	all.Wait()
	close(answers)
	shown, fresh := map[string]bool{}, 0
	for p := range answers {
		wantPage(t, p, 200, "/admin/client/add", "Copy this now")
		for _, m := range secretOf.FindAllStringSubmatch(p.body, -1) {
			shown[m[1]] = true
		}
		if !strings.Contains(p.body, "Already done") {
			fresh++
		}
	}
	made, err := s.parts.Store.ListClients(t.Context(), "", 100)
	if err != nil || len(made) != 1 || len(shown) != 1 || fresh != 1 {
		t.Errorf("OB-10: %d clients, %d secrets, %d first answers, %v; want one of each", len(made), len(shown), fresh, err)
	}
}

var secretOf = regexp.MustCompile(`(?s)<div class="secret">.*?<code>([^<]+)</code>`)

// TestConsoleProposesOnce checks that one form creates one proposal for two administrators (OB-10).
func TestConsoleProposesOnce(t *testing.T) {
	t.Parallel()
	_, _, at := twoReplicas(t, func(c *config.Loaded) { c.Console.TwoAdministrators = []string{"user disable"} })
	ask := at[0].at("/admin/user/disable?name=bob", "alice")
	first := at[0].send(ask, "/admin/user/disable")
	wantPage(t, first, 202, "/admin/user/disable", "Nothing has changed yet")
	id := proposalPage.FindStringSubmatch(first.body)[1]
	wantPage(t, at[1].send(ask, "/admin/user/disable"), 200, "/admin/user/disable", "Already proposed",
		"/admin/proposal/show?id="+id)
	if list := at[0].get("/admin/proposal/list").body; strings.Count(list, "/admin/proposal/decline?id=") != 1 {
		t.Errorf("OB-10: it was proposed twice: %.3000s", list)
	}
}

// TestConsoleOutcomeNotKnown checks that a form whose result could not be stored has an unknown
// outcome, and does not run again (OB-10).
func TestConsoleOutcomeNotKnown(t *testing.T) {
	t.Parallel()
	parts := consoled(t, nil).parts
	clock := &aging{Store: parts.Store}
	store := storagetest.NewFailing(clock)
	store.Surround(func(verb string, do func() error) error {
		if verb == "EndKeyed" {
			return storagetest.ErrInjected
		}
		return do()
	})
	parts.Store = store
	s, err := parts.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	b := browse(t, s.Handler())
	ask := b.at("/admin/user/disable?name=bob", "alice")
	wantPage(t, b.send(ask, "/admin/user/disable"), 200, "/admin/user/show?name=bob", "bob is disabled.")
	if err := s.Auth.Users().Enable(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	clock.by.Store(int64(2 * time.Minute))
	wantPage(t, b.send(ask, "/admin/user/disable"), 409, "/admin/user/disable", "Outcome not known",
		`href="/admin/user/show?name=bob"`)
	if u, _ := s.Auth.Users().Find(t.Context(), "bob"); u.Disabled {
		t.Error("OB-10: a form was carried out twice")
	}
}

// TestConsoleFormsAreForTheAccountThatWasShown checks that a form applies only to the account that
// its page showed (OB-10). Another account that has received its name since, or whose name is its
// ID, stays unchanged.
func TestConsoleFormsAreForTheAccountThatWasShown(t *testing.T) {
	t.Parallel()
	s := consoled(t, nil)
	b, people := browse(t, s.Handler()), s.Auth.Users()
	ask := b.at("/admin/user/disable?name=bob", "alice")
	shown, err := people.Find(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := people.Delete(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	later, err := people.Create(t.Context(), "bob", passphrase, false)
	if err != nil {
		t.Fatal(err)
	}
	wantPage(t, b.send(ask, "/admin/user/disable"), 404, "/admin/user/disable", "there is no user", shown.ID)
	if u, _ := people.Find(t.Context(), later.ID); u.Disabled {
		t.Error("OB-10: an account was disabled that was not shown")
	}
	carol, _ := people.Find(t.Context(), "carol")
	// An earlier version allowed an account to use another account's ID as its name.
	liar := storage.User{ID: "usr_liar", Name: carol.ID, CreatedAt: time.Now()}
	if err := s.parts.Store.CreateUser(t.Context(), liar); err != nil {
		t.Fatal(err)
	}
	role := b.get("/admin/user/set-role?name=carol")
	wantPage(t, b.send(role, "/admin/user/set-role", "role", "auditor"), 200, "/admin/user/show?name=carol",
		`role="status"`, "carol")
	for id, want := range map[string]storage.Role{carol.ID: storage.Auditor, liar.ID: ""} {
		if u, err := s.parts.Store.User(t.Context(), id); err != nil || u.Role != want {
			t.Errorf("OB-10: %s has the role %q, want %q; %v", u.Name, u.Role, want, err)
		}
	}
	wantPage(t, b.get("/admin/user/disable?name=nobody"), 404, "/admin/user/disable", "there is no user")
	wantPage(t, b.get("/admin/user/invite?name=nobody"), 200, "/admin/user/invite")
	wantPage(t, b.send(b.get("/admin/user/invite?name=dora"), "/admin/user/invite"), 200, "/admin/user/invite", "Copy")
	withdraw := b.get("/admin/user/links/withdraw?name=dora")
	wantPage(t, b.send(withdraw, "/admin/user/links/withdraw"), 200, "/admin/user/links?done=", "no longer work",
		"No open links")
	wantPage(t, b.get("/admin/user/links/withdraw?name=nobody"), 200, "/admin/user/links/withdraw")
}

// TestConsoleWhileTheAuditIsAway checks the console with audit.required (OB-06). If the audit entry
// of a change could not be written, the page must report it. While the log accepts no entries, the
// next change does not start. Its form can be sent once the log is back.
func TestConsoleWhileTheAuditIsAway(t *testing.T) {
	t.Parallel()
	parts := consoled(t, func(c *config.Loaded) { c.Audit.Enabled, c.Audit.Required = true, true }).parts
	var away atomic.Bool
	store := storagetest.NewFailing(parts.Store)
	store.Surround(func(verb string, do func() error) error {
		if verb == "AppendAudit" && away.Load() {
			return storagetest.ErrInjected
		}
		return do()
	})
	parts.Store, parts.Audit = store, audit.New(slog.New(slog.DiscardHandler))
	s, err := parts.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, authserver.Site{Listener: l, Handler: s.Handler()}) }()
	t.Cleanup(func() {
		away.Store(false)
		stop()
		<-ended
	})
	b := browse(t, s.Handler())
	first := b.at("/admin/user/disable?name=bob", "alice")
	second := b.get("/admin/user/disable?name=carol")
	sorry := func(p page, has string) {
		t.Helper()
		wantPage(t, p, 503, "/admin/user/disable", "<html", "</main>", has)
		if p.header.Get("Retry-After") == "" || !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
			t.Errorf("OB-06: got %v", p.header)
		}
	}
	disabled := func(name string) bool {
		t.Helper()
		u, err := s.Auth.Users().Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return u.Disabled
	}
	away.Store(true)
	unkept := b.send(first, "/admin/user/disable")
	sorry(unkept, "not in the audit log yet")
	if strings.Contains(unkept.body, `action="/admin/user/disable`) {
		t.Error("OB-06: the page has a form that repeats the change")
	}
	sorry(b.send(second, "/admin/user/disable"), "Please try again")
	if !disabled("bob") || disabled("carol") {
		t.Errorf("OB-06: bob %v, carol %v", disabled("bob"), disabled("carol"))
	}
	away.Store(false)
	var p page
	wait.Until(t, "the log takes entries again", func() bool {
		p = b.send(second, "/admin/user/disable")
		return p.status != http.StatusServiceUnavailable
	})
	wantPage(t, p, 200, "/admin/user/show?name=carol", `role="status"`, "carol")
	wantPage(t, b.send(first, "/admin/user/disable"), 409, "/admin/user/disable", "Outcome not known")
}
