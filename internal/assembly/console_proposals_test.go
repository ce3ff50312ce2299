package assembly

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
)

var proposalPage = regexp.MustCompile(`/admin/proposal/show\?id=(prp_[\w-]+)`)

// TestConsoleProposals checks that the console proposes an operation that needs two administrators
// (OB-10). It must offer the proposer to decline, and permitted users to accept or decline, while
// the proposal is open.
func TestConsoleProposals(t *testing.T) {
	t.Parallel()
	s := consoled(t, func(l *config.Loaded) {
		l.Console.TwoAdministrators = []string{"user disable", "user set-role"}
	})
	service, err := s.parts.Admin(s.notifier)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Auth.Users().Create(t.Context(), "sam", passphrase, false); err != nil {
		t.Fatal(err)
	}
	in := admin.UserRole{Name: "sam", Role: string(admin.Support)}
	if _, err := admin.UserSetRole.Do(t.Context(), service.Operator(), in); err != nil {
		t.Fatal(err)
	}
	alice, root, sam := browse(t, s.Handler()), browse(t, s.Handler()), browse(t, s.Handler())
	propose := func(path string, kv ...string) string {
		t.Helper()
		p := alice.send(alice.get(path), path[:strings.Index(path, "?")], kv...)
		wantPage(t, p, 202, "/admin/user", "Nothing has changed yet")
		id := proposalPage.FindStringSubmatch(p.body)
		if id == nil {
			t.Fatalf("OB-10: the page does not lead to the proposal: %.3000s", p.body)
		}
		return id[1]
	}
	offers := func(b *browser, id string, accept, decline bool) {
		t.Helper()
		for _, path := range []string{"/admin/proposal/list", "/admin/proposal/show?id=" + id} {
			p := b.get(path)
			if got := strings.Contains(p.body, "/admin/proposal/accept?id="+id); got != accept || p.status != 200 {
				t.Errorf("OB-10: %s (%d) offers to accept: %v, want %v", path, p.status, got, accept)
			}
			if got := strings.Contains(p.body, "/admin/proposal/decline?id="+id); got != decline {
				t.Errorf("OB-10: %s offers to decline: %v, want %v", path, got, decline)
			}
		}
	}
	alice.at("/admin", "alice")
	root.at("/admin", "root")
	sam.at("/admin", "sam")
	disable := propose("/admin/user/disable?name=bob")
	role := propose("/admin/user/set-role?name=carol", "role", "auditor")
	offers(alice, disable, false, true)
	offers(root, disable, true, true)
	offers(sam, disable, true, true)
	offers(sam, role, false, false)
	by, err := s.Auth.Users().Find(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	wantPage(t, root.get("/admin/proposal/list"), 200, "/admin/proposal", ">user disable<", "bob (usr_",
		"role: auditor", "/admin/user/show?name="+url.QueryEscape(by.ID), by.ID)
	wantPage(t, root.get("/admin"), 200, "/admin", "2 proposals wait for you")
	wantPage(t, sam.get("/admin"), 200, "/admin", "1 proposal waits for you")
	if p := alice.get("/admin"); strings.Contains(p.body, "for you to accept") {
		t.Error("OB-10: the overview asks alice to accept what she proposed")
	}
	ask := root.get("/admin/proposal/accept?id=" + disable)
	wantPage(t, root.send(ask, "/admin/proposal/accept"), 200, "/admin/proposal/accept")
	if u, _ := s.Auth.Users().Find(t.Context(), "bob"); !u.Disabled {
		t.Error("OB-10: the accepted proposal was not carried out")
	}
	offers(root, disable, false, false)
	ask = alice.get("/admin/proposal/decline?id=" + role)
	wantPage(t, alice.send(ask, "/admin/proposal/decline"), 200, "/admin/proposal/show?id="+role, ">declined<")
	offers(root, role, false, false)
}

// TestConsoleProposalsAboutThings checks that the console keeps support from accounts with a role,
// and can propose operations on objects that do not exist yet (EN-06, EN-07).
func TestConsoleProposalsAboutThings(t *testing.T) {
	t.Parallel()
	s := consoled(t, func(l *config.Loaded) {
		l.Console.TwoAdministrators = []string{"user invite", "user disable"}
	})
	service, err := s.parts.Admin(s.notifier)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Auth.Users().Create(t.Context(), "sam", passphrase, false); err != nil {
		t.Fatal(err)
	}
	in := admin.UserRole{Name: "sam", Role: string(admin.Support)}
	if _, err := admin.UserSetRole.Do(t.Context(), service.Operator(), in); err != nil {
		t.Fatal(err)
	}
	alice, root, sam := browse(t, s.Handler()), browse(t, s.Handler()), browse(t, s.Handler())
	alice.at("/admin", "alice")
	root.at("/admin", "root")
	sam.at("/admin", "sam")
	propose := func(path, to string, kv ...string) string {
		t.Helper()
		p := alice.send(alice.get(path), to, kv...)
		wantPage(t, p, 202, "/admin/user", "Nothing has changed yet")
		id := proposalPage.FindStringSubmatch(p.body)
		if id == nil {
			t.Fatalf("EN-07: the page does not lead to the proposal: %.3000s", p.body)
		}
		return id[1]
	}
	invite := propose("/admin/user/invite", "/admin/user/invite", "name", "newcomer", "role", "auditor")
	disable := propose("/admin/user/disable?name=root", "/admin/user/disable")
	for _, id := range []string{invite, disable} {
		for _, path := range []string{"/admin/proposal/list", "/admin/proposal/show?id=" + id} {
			if p := sam.get(path); p.status != 200 || strings.Contains(p.body, "/admin/proposal/accept?id="+id) ||
				strings.Contains(p.body, "/admin/proposal/decline?id="+id) {
				t.Errorf("EN-06 EN-07: %s (%d) offers support to decide on an account with a role", path, p.status)
			}
			if p := root.get(path); !strings.Contains(p.body, "/admin/proposal/accept?id="+id) {
				t.Errorf("EN-07: %s does not offer an administrator to accept it", path)
			}
		}
		for _, act := range []string{"/admin/proposal/accept", "/admin/proposal/decline"} {
			if p := sam.get(act + "?id=" + id); p.status != 403 {
				t.Errorf("EN-06: support at %s: %d, want 403", act, p.status)
			}
		}
	}
	if p := sam.get("/admin"); strings.Contains(p.body, "for you to accept") {
		t.Error("EN-07: the overview asks support to accept what support may not")
	}
	p := root.send(root.get("/admin/proposal/accept?id="+invite), "/admin/proposal/accept")
	wantPage(t, p, 200, "/admin/proposal/accept", "/link/mcplk_")
	if p := sam.get("/admin/user/links/withdraw?name=newcomer"); p.status != 403 {
		t.Errorf("EN-06: support ends an invitation with a role: %d, want 403", p.status)
	}
}
