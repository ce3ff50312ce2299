package authserver

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const niceRedirect, loopback = "https://nice.example/cb", "http://127.0.0.1:7777/cb"

// forms lists the registrations that a hostile client changes between.
var forms = []func(*storage.Client){
	func(c *storage.Client) { c.RedirectURIs = []string{niceRedirect} },
	func(c *storage.Client) { c.RedirectURIs = []string{evil} },
	func(c *storage.Client) { c.RedirectURIs = []string{niceRedirect, evil} },
	func(c *storage.Client) { c.RedirectURIs = []string{loopback, niceRedirect} },
	func(c *storage.Client) { c.RedirectURIs, c.Name = []string{niceRedirect, evil}, "Claude" },
	func(c *storage.Client) { c.RedirectURIs, c.JWKSURI = []string{niceRedirect}, evil },
}

var fullAddress = regexp.MustCompile(`<code><bdi>([^<]*)</bdi></code>`)

// question is a consent page and its contents.
type question struct {
	page
	place    string // in full
	material storage.Hash
}

// asker is a user before the pages of a changing client.
type asker struct {
	*person
	client   storage.Client
	approved map[string]bool // place and material
	asked    *question
}

func key(place string, material storage.Hash) string {
	return oauth.RedirectPlace(place) + fmt.Sprintf("%x", material)
}

func (a *asker) change(form int) {
	c := storage.Client{
		ID: a.client.ID, Name: "Nice", GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none",
		Source: storage.SourceManaged, CreatedAt: a.now(),
	}
	forms[form%len(forms)](&c)
	a.replace(c)
	a.client = c
}

func (a *asker) open(redirect string) {
	a.heard(a.get("/authorize?"+authorizeQuery("client_id", a.client.ID, "redirect_uri", redirect).Encode()), "")
}

func (a *asker) press(verdict string) {
	if a.asked == nil {
		return
	}
	q := *a.asked
	a.asked = nil
	a.heard(a.post("/consent", url.Values{"step": {consentStep(a.t, q.page)}, "decision": {verdict}}), verdict, q)
}

// heard checks an answer against the one rule: a redirect URI gets only the contents of its page,
// for the unchanged client.
func (a *asker) heard(pg page, verdict string, before ...question) {
	a.t.Helper()
	now := a.client.Material()
	to, _, _ := strings.Cut(pg.header.Get("Location"), "?")
	switch {
	case to == "" && pg.status == http.StatusOK && strings.Contains(pg.body, `value="approve"`):
		m := fullAddress.FindStringSubmatch(pg.body)
		a.asked = &question{pg, html.UnescapeString(m[1]), now}
	case to == "": // an error page
	case verdict == "" && !a.approved[key(to, now)]:
		a.t.Fatalf("an answer without a question, to %s", pg.header.Get("Location"))
	case verdict == "" && !responseOf(a.t, pg).Has("code"):
		a.t.Fatalf("approved, and refused: %s", pg.header.Get("Location"))
	case verdict == "":
	case to != before[0].place || now != before[0].material:
		a.t.Fatalf("the page said %s, the answer went to %s", before[0].place, pg.header.Get("Location"))
	case responseOf(a.t, pg).Has("code") != (verdict == "approve"):
		a.t.Fatalf("%s: %s", verdict, pg.header.Get("Location"))
	case verdict == "approve":
		a.approved[key(to, now)] = true
	}
	if verdict != "" && to == "" && before[0].material == now {
		a.t.Fatalf("nothing has changed, and the answer does not count: %d", pg.status)
	}
}

// FuzzPageWhileTheClientChanges changes a client, opens pages and presses buttons in any order
// (Security H1, H2). Each byte is a step.
func FuzzPageWhileTheClientChanges(f *testing.F) {
	for _, steps := range []string{
		"\x00\x01\x04\x02", "\x00\x01\x02\x04\x09\x02", "\x08\x05\x02\x09\x0d", "\x08\x05\x02\x10\x05\x03",
		"\x0c\x0d\x02\x05\x09\x02\x00\x01",
	} {
		f.Add([]byte(steps))
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		p := newRig(t).person()
		p.signIn()
		a := &asker{person: p, client: storage.Client{ID: "changing"}, approved: map[string]bool{}}
		a.change(0)
		for _, b := range steps[:min(len(steps), 24)] {
			switch n := int(b >> 2); b & 3 {
			case 0:
				a.change(n)
			case 1:
				a.open([]string{"", niceRedirect, evil, loopback}[n%4])
			case 2:
				a.press("approve")
			case 3:
				a.press("deny")
			}
		}
	})
}

// TestConsentUnderParallelChanges changes a client constantly while users open pages, press buttons
// and return. In any order, an answer goes to the redirect URI on the page.
func TestConsentUnderParallelChanges(t *testing.T) {
	r := newRig(t)
	base := storage.Client{
		ID: "parallel", Name: "Nice", GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none",
		Source: storage.SourceManaged, CreatedAt: r.now(),
	}
	change := func(form int) {
		c := base
		forms[form%2](&c) // one place or the other
		if err := r.store.ReplaceClient(t.Context(), c, r.now()); err != nil {
			t.Error(err)
		}
	}
	change(0)
	var people []*person
	for range 4 {
		p := r.person()
		p.signIn()
		people = append(people, p)
	}
	stop := make(chan struct{})
	var changing, wg sync.WaitGroup
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				change(i)
			}
		}
	})
	query := authorizeQuery("client_id", "parallel", "redirect_uri", "", "prompt", "consent").Encode()
	for _, p := range people {
		wg.Go(func() {
			for range 15 {
				pg := p.get("/authorize?" + query)
				m := fullAddress.FindStringSubmatch(pg.body)
				if m == nil || !strings.Contains(pg.body, `value="approve"`) {
					continue // it changed too often, and a page reports that
				}
				pg = p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
				if to, _, _ := strings.Cut(pg.header.Get("Location"), "?"); to != "" &&
					to != html.UnescapeString(m[1]) {
					t.Errorf("H1: the page said %s, the answer went to %s", m[1], pg.header.Get("Location"))
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	changing.Wait()
}
