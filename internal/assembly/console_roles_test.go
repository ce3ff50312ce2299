package assembly

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// roled returns a server with one account for each role, and a browser for each.
func roled(t *testing.T) map[admin.Role]*browser {
	t.Helper()
	s := consoled(t, nil)
	service, err := s.parts.Admin(s.notifier)
	if err != nil {
		t.Fatal(err)
	}
	browsers := map[admin.Role]*browser{}
	for name, role := range map[string]admin.Role{
		"alice": admin.Administrator, "ann": admin.Auditor, "sam": admin.Support, "bob": "",
	} {
		if role == admin.Auditor || role == admin.Support {
			if _, err := s.Auth.Users().Create(t.Context(), name, passphrase, false); err != nil {
				t.Fatal(err)
			}
			in := admin.UserRole{Name: name, Role: string(role)}
			if _, err := admin.UserSetRole.Do(t.Context(), service.Operator(), in); err != nil {
				t.Fatal(err)
			}
		}
		browsers[role] = browse(t, s.Handler())
		browsers[role].at("/admin", name)
	}
	return browsers
}

var pathField = regexp.MustCompile(`{([a-z_]+)}`)

// pageOf returns the page of an operation, with existing objects where a name identifies them.
func pageOf(verb admin.Verb) string {
	query := url.Values{}
	for _, f := range pathField.FindAllStringSubmatch(verb.Spec().Path, -1) {
		query.Set(f[1], "x")
		if f[1] == "name" {
			query.Set("name", "carol")
		}
	}
	return "/admin/" + strings.ReplaceAll(verb.Spec().Name, " ", "/") + "?" + query.Encode()
}

var linkTo = regexp.MustCompile(`(?:href|action)="(/admin/[^"?]*)`)

// TestConsoleOfEachRole checks that the page of an operation refuses roles without permission, for
// GET and POST, and that no page links to it (OB-10).
func TestConsoleOfEachRole(t *testing.T) {
	t.Parallel()
	for role, b := range roled(t) {
		var pages []page
		for _, verb := range admin.All() {
			s, path := verb.Spec(), pageOf(verb)
			got := b.get(path)
			posted := b.do(http.MethodPost, path, url.Values{})
			pages = append(pages, got)
			allowed := role != "" && s.Permits(role)
			if refused := got.status == http.StatusForbidden; refused == allowed {
				t.Errorf("OB-10: %q opens %s: %d", role, path, got.status)
			}
			if !allowed && posted.status != http.StatusForbidden {
				t.Errorf("OB-10: %q posts %s: %d", role, path, posted.status)
			}
			if !allowed && strings.Contains(got.body, "carol") {
				t.Errorf("OB-10: %s tells %q of others", path, role)
			}
			if got.status >= 500 || posted.status >= 500 {
				t.Errorf("OB-10: %s fails for %q: %d, %d: %.800s", path, role, got.status, posted.status, got.body)
			}
		}
		may := map[string]bool{}
		for _, verb := range admin.All() {
			may["/admin/"+strings.ReplaceAll(verb.Spec().Name, " ", "/")] = role != "" && verb.Spec().Permits(role)
		}
		may["/admin/attempt/bundle"] = may["/admin/attempt/show"]
		for _, p := range append(pages, b.get("/admin")) {
			for _, m := range linkTo.FindAllStringSubmatch(p.body, -1) {
				if to := html.UnescapeString(m[1]); !may[to] {
					t.Errorf("OB-10: %s leads %q to %s", p.path, role, to)
				}
			}
		}
		if p := b.get("/admin/attempt/bundle?reference=K7PX2M4Q"); (p.status == http.StatusForbidden) != (role == "") {
			t.Errorf("OB-03 OB-10: %q asks for a bundle: %d", role, p.status)
		}
	}
}

// TestConsoleOffersWhatTheServiceAllows checks that a page offers a change if and only if the
// service would permit it (OB-10, EN-06). Support must be offered nothing about an account with a
// role.
func TestConsoleOffersWhatTheServiceAllows(t *testing.T) {
	t.Parallel()
	offered := 0
	for role, b := range roled(t) {
		if role == "" {
			continue
		}
		for _, name := range []string{"root", "bob"} {
			var shown string
			for _, path := range []string{"/admin/user/list", "/admin/user/show?name=" + name} {
				shown += b.get(path).body
			}
			for _, verb := range admin.All() {
				s := verb.Spec()
				if s.Noun() != "user" || !s.Changes() || !strings.Contains(s.Path, "{name}") {
					continue
				}
				page := pageOf(verb)
				page = strings.ReplaceAll(page, "carol", name)
				refused := b.get(page).status == http.StatusForbidden
				wanted := !s.Permits(role) || role == admin.Support && name == "root"
				if refused != wanted {
					t.Errorf("EN-06: %q opens %s: refused %v, want %v", role, page, refused, wanted)
				}
				link := strings.Contains(shown, html.EscapeString(page)+`"`)
				if link && refused {
					t.Errorf("OB-10: %q is offered %s, and refused it", role, page)
				}
				if link {
					offered++
				}
			}
		}
	}
	if offered < 15 {
		t.Errorf("OB-10: the pages offer %d changes to all roles", offered)
	}
}

// aging is a store with an adjustable clock.
type aging struct {
	storage.Store
	by atomic.Int64
}

func (a *aging) Correct(at time.Time) time.Time {
	return a.Store.Correct(at).Add(time.Duration(a.by.Load()))
}

// TestConsoleKeepsWhatWasFilledIn checks that a user whose authentication expired while filling in
// a form must authenticate again, and then sees the form as filled in (OB-10). It does not run by
// itself. A password is not kept.
func TestConsoleKeepsWhatWasFilledIn(t *testing.T) {
	t.Parallel()
	parts := consoled(t, nil).parts
	store := &aging{Store: parts.Store}
	parts.Store = store
	s, err := parts.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	b := browse(t, s.Handler())
	mail := b.at("/admin/user/set-mail?name=bob", "alice")
	passwd, long := b.get("/admin/user/passwd?name=bob"), b.get("/admin/client/add")
	store.by.Store(int64(11 * time.Minute))

	p := b.send(mail, "/admin/user/set-mail", "mail", "bob@example.com")
	wantPage(t, p, 200, "/prove?to=", "alice")
	p = b.send(p, "/prove", "password", passphrase)
	wantPage(t, p, 200, "/admin/user/set-mail?kept=", `value="bob@example.com"`)
	if u, _ := s.Auth.Users().Find(t.Context(), "bob"); u.Mail != "" {
		t.Fatal("OB-10: the act was carried out without a second press")
	}
	other := strings.Replace(p.path, "/set-mail?", "/recover?", 1)
	if q := b.get(other); strings.Contains(q.body, "bob@example.com") {
		t.Error("OB-10: the input of one form is in another form")
	}
	wantPage(t, b.send(p, "/admin/user/set-mail", "mail", "bob@example.com"), 200, "/admin/user/show?name=bob",
		"The mail address of bob was changed.")
	if u, _ := s.Auth.Users().Find(t.Context(), "bob"); u.Mail != "bob@example.com" {
		t.Errorf("OB-10: the second press did nothing: %+v", u)
	}

	store.by.Store(int64(22 * time.Minute))
	p = b.send(long, "/admin/client/add", "name", strings.Repeat("long ", 1000))
	wantPage(t, p, 403, "/admin/client/add", "too long to be kept", "long long")
	p = b.send(passwd, "/admin/user/passwd", "password", "a new password of bob's", "keep_grants", "true")
	wantPage(t, p, 200, "/prove?to=")
	p = b.send(p, "/prove", "password", passphrase)
	wantPage(t, p, 200, "/admin/user/passwd?kept=", "checked")
	if strings.Contains(p.body, "of bob's") || strings.Contains(p.body, "of bob&#39;s") {
		t.Errorf("OB-10: the page has the password: %s", p.body)
	}
}
