package authserver

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

var (
	nodeRow     = regexp.MustCompile(`data-node="(nod_[^"]+)"`)
	helpersLink = regexp.MustCompile(`<a class="plain" href="(/account/helpers\?grant=[^"]+)">([^<]*)</a>`)
)

// cutting posts the form of a page of sub-agents.
func (p *person) cutting(from page, node string, change ...string) page {
	p.t.Helper()
	form := url.Values{
		"step": {formStep(p.t, from, "/account/connections")}, "act": {"cut"}, "node": {node},
		"grant": {regexp.MustCompile(`name="grant" value="([^"]+)"`).FindStringSubmatch(from.body)[1]},
	}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return p.post("/account/connections", form)
}

func TestAccountHelpers(t *testing.T) {
	r := newRig(t)
	p := r.person()
	own := p.signIn()["access_token"].(string)
	if pg := p.get("/account"); helpersLink.MatchString(pg.body) {
		t.Error("an application without helpers has a link to them")
	}
	top := p.helper(own, "actor", "planner", "scope", "mcp")
	low := p.helper(top, "actor", "reader")
	beside := p.helper(own, "actor", "writer")
	link := helpersLink.FindStringSubmatch(p.get("/account").body)
	if link == nil || link[2] != "3 helpers" {
		t.Fatalf("AS-243 the account page: got %q", link)
	}
	pg := p.get(link[1])
	id := func(token string) string { return r.verified(t, token).NodeID }
	t.Run("AS-243 PE-09 a person sees the helpers of an application, in their tree, with quoted names", func(t *testing.T) {
		if got, want := rows(nodeRow, pg), []string{id(top), id(low), id(beside)}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		nested := regexp.MustCompile(`(?s)data-node="` + id(top) + `".*?<ul[^>]*>\s*<li data-node="` + id(low) + `"`)
		if !nested.MatchString(pg.body) || !strings.Contains(pg.body, "“<bdi>planner</bdi>”") {
			t.Errorf("got %s", pg.body)
		}
	})
	t.Run("PE-08 another person's are as unknown as what never was", func(t *testing.T) {
		if _, err := r.Users().Create(t.Context(), "bob", "another horse battery", false); err != nil {
			t.Fatal(err)
		}
		bob := r.person()
		bob.post("/login", url.Values{
			"step": {bob.get("/login").step(t)}, "username": {"bob"}, "password": {"another horse battery"},
		})
		for _, path := range []string{link[1], "/account/helpers?grant=grt_none", "/account/helpers"} {
			if pg := bob.get(path); pg.status != http.StatusSeeOther || pg.header.Get("Location") != "/account" {
				t.Errorf("%s: got %d to %q", path, pg.status, pg.header.Get("Location"))
			}
		}
		bob.account("connections", "grant", r.verified(t, own).GrantID, "act", "cut", "node", id(top)).
			has(t, http.StatusOK, "had ended already")
		r.wantActive(p, "top", top, true)
		r.person().get(link[1]).leads(t, "/login")
	})
	t.Run("PE-08 a helper of another of one's own grants is not cut by this form", func(t *testing.T) {
		r.nice()
		asNice := []string{"client_id", "nice", "redirect_uri", ""}
		_, out := p.token(codeForm(p.approve(niceQuery()).Get("code"), asNice...))
		form := helperForm(out["access_token"], "actor", "stranger")
		form.Set("client_id", "nice")
		_, out = p.token(form)
		other := out["access_token"].(string)
		p.cutting(pg, id(other)).leads(t, "/account?done=")
		r.wantActive(p, "other", other, true)
	})
	t.Run("AS-47 a form of another site, or of another browser, is refused", func(t *testing.T) {
		form := url.Values{
			"step": {formStep(t, pg, "/account/connections")}, "act": {"cut"}, "node": {id(top)},
			"grant": {r.verified(t, own).GrantID},
		}
		if got := p.post("/account/connections", form, "Sec-Fetch-Site", "cross-site"); got.status != 403 {
			t.Errorf("another site: got %d", got.status)
		}
		thief := r.person()
		thief.login(authorizeQuery())
		if got := thief.post("/account/connections", form); got.status != 400 {
			t.Errorf("another browser: got %d", got.status)
		}
		r.wantActive(p, "top", top, true)
	})
	t.Run("AS-243 a person cuts one, and what is below it ends", func(t *testing.T) {
		done := p.cutting(pg, id(top))
		done.leads(t, "/account/helpers?")
		after := p.get(done.header.Get("Location"))
		after.has(t, http.StatusOK, "The helper has ended")
		if got := rows(nodeRow, after); !slices.Equal(got, []string{id(beside)}) {
			t.Errorf("got %v", got)
		}
		r.wantActive(p, "top", top, false)
		r.wantActive(p, "low", low, false)
		r.wantActive(p, "beside", beside, true)
		r.wantActive(p, "own", own, true)
		e := r.last(t, "helper.cut")
		if e["actor"] != "planner" || e["revoked_by"] != string(storage.ByPerson) || e["node"] != id(top) ||
			e["grant"] != r.verified(t, own).GrantID {
			t.Errorf("the audit: got %v", e)
		}
	})
	t.Run("AS-243 no helper is left", func(t *testing.T) {
		p.get(p.cutting(pg, id(beside)).header.Get("Location")).has(t, http.StatusOK, "has no helpers now")
	})
}

// AS-232: access through an organization is labeled, and the page offers only effective actions:
// the next assertion would undo a pause, or fewer permissions.
func TestAccountOfAnOrganization(t *testing.T) {
	r := newBearerRig(t)
	p := r.person()
	p.signIn()
	u, err := r.store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	name := storage.TrustName{Issuer: r.acme.URL, Kind: storage.TrustSubject, Subject: r.claims()["sub"].(string)}
	link := storage.TrustLink{TrustName: name, UserID: u.ID, By: storage.LinkedByOperator, CreatedAt: r.now()}
	if err := r.store.LinkTrust(t.Context(), link); err != nil {
		t.Fatal(err)
	}
	reply, claims := r.granted(r.jag(r.claims()))
	if claims.Subject != u.ID {
		t.Fatalf("got %s", claims.Subject)
	}
	pg := p.get("/account")
	given := regexp.MustCompile(`(?s)data-grant="` + claims.GrantID + `".*?</form></li>`).FindString(pg.body)
	for _, want := range []string{
		`by your organization <strong><bdi>acme</bdi></strong> <span class="address">(<bdi class="host">acme.example</bdi>)`,
		"can give it again", `value="disconnect"`, `value="pause"`,
	} {
		if !strings.Contains(given, want) {
			t.Errorf("AS-232: no %s in %s", want, given)
		}
	}
	for _, not := range []string{`value="narrow"`, "alice"} {
		if strings.Contains(given, not) {
			t.Errorf("AS-232: there is %s in %s", not, given)
		}
	}
	if n := strings.Count(pg.body, "by your organization"); n != 1 || !strings.Contains(pg.body, `value="pause"`) {
		t.Errorf("AS-232: %d applications are said to be of the organization, want 1 of 2", n)
	}
	p.account("connections", "grant", claims.GrantID, "act", "disconnect").has(t, http.StatusOK, "is disconnected")
	if got := r.introspected(p, reply.AccessToken); got["active"] != false {
		t.Errorf("AS-232: got %v", got)
	}
}
