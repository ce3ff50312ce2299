package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// person is a user with a browser and accounts.
type person struct {
	*browsertest.Tab
	idptest.User
	refuses string   // the host where they refuse: "provider" or "mcp-authd"
	clicks  []string // the pressed buttons with their hosts
	pages   []page   // the pages shown before each click
}

// page is the content of a browser page.
type page struct {
	URL, Title, Text            string
	Login, Allow, Approve, Back bool
	Links                       []string // "text address"
}

// newPerson opens an automated browser, which need not wait before it approves
// (web/assets/hold.js).
func newPerson(t *testing.T, u idptest.User) *person {
	t.Helper()
	b := browsertest.Open(t, browsertest.Look{})
	b.Automate()
	return &person{Tab: b, User: u}
}

// look is null between two pages, and for the form with the provider's response, which submits
// itself.
const look = `(document.readyState != 'complete' || window.left
	|| document.querySelector('form[action*="/callback/"] input[name=state]') ? null : {
	URL: location.href, Title: document.title, Text: document.body.innerText,
	Login: !!document.querySelector('input[name=login]'), Allow: !!document.querySelector('button[value=allow]'),
	Approve: !!document.querySelector('button[value=approve]'), Back: document.title == 'back at the application',
	Links: [...document.querySelectorAll('a[href], form button')].map(a => a.innerText.trim() + ' ' + (a.href || '')),
})`

// look waits until the browser shows a page that it is not about to leave.
func (p *person) look() (shown page, err error) {
	err = wait.Retry(wait.Bound, func() error {
		now, err := browsertest.Run(p.Tab, chromedp.Evaluate[*page](look))
		if err == nil && now == nil {
			err = errors.New("it is between two pages")
		}
		if err == nil {
			shown = *now
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("the browser shows nothing: %w", err)
	}
	return shown, err
}

func (p *person) open(link string) (page, error) {
	if _, err := browsertest.Run(p.Tab, chromedp.Navigate(link)); err != nil {
		return page{}, err
	}
	return p.look()
}

// press clicks a button or a link and waits for the next page.
func (p *person) press(selector string) (page, error) {
	shown, err := p.look()
	if err != nil {
		return shown, err
	}
	u, err := url.Parse(shown.URL)
	if err != nil {
		return shown, err
	}
	label, err := browsertest.Run(p.Tab, chromedp.Evaluate[string](
		fmt.Sprintf("window.left = true, document.querySelector(%q).innerText.trim()", selector)))
	if err != nil {
		return shown, fmt.Errorf("no %s on %s: %w", selector, shown.URL, err)
	}
	p.clicks = append(p.clicks, u.Host+": "+label)
	p.pages = append(p.pages, shown)
	if _, err := browsertest.Run(p.Tab, chromedp.Click(chromedp.CSS(selector))); err != nil {
		return shown, err
	}
	return p.look()
}

// goOn completes the pages until the browser is at the application, or shows a page without
// anything to do.
func (p *person) goOn(shown page) (page, error) {
	var err error
	for range 12 {
		switch {
		case shown.Back:
			return shown, nil
		case shown.Login && p.refuses == "provider":
			shown, err = p.press("button[value=deny]")
		case shown.Login:
			if err = p.fill("login", p.Email, p.Password); err == nil {
				shown, err = p.press("form button")
			}
		case shown.Allow:
			shown, err = p.press("button[value=allow]")
		case shown.Approve && p.refuses == "mcp-authd":
			shown, err = p.press("button[value=deny]")
		case shown.Approve:
			shown, err = p.press("button[value=approve]")
		default:
			return shown, nil
		}
		if err != nil {
			return shown, err
		}
	}
	return shown, fmt.Errorf("the pages go on and on; the last is %+v", shown)
}

func (p *person) fill(field, name, password string) error {
	_, err := browsertest.Run(p.Tab, chromedp.Steps(
		chromedp.SetValue(chromedp.CSS("input[name="+field+"]"), name),
		chromedp.SetValue(chromedp.CSS("input[name=password]"), password)))
	return err
}

// visit opens a link and completes the pages. It fails the test unless they lead to the
// application.
func (p *person) visit(t *testing.T, link string) page {
	t.Helper()
	shown := p.see(t, link)
	if !shown.Back {
		t.Fatalf("the browser is not at the application but at %s:\n%s", shown.URL, shown.Text)
	}
	return shown
}

// see opens a link, completes the pages, and returns the last of them.
func (p *person) see(t *testing.T, link string) page {
	t.Helper()
	shown, err := p.open(link)
	if err == nil {
		shown, err = p.goOn(shown)
	}
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// glance opens a link and presses nothing.
func (p *person) glance(t *testing.T, link string) page {
	t.Helper()
	shown, err := p.open(link)
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// cookies returns the names of the browser's cookies for a URL.
func (p *person) cookies(t *testing.T, link string) (names []string) {
	t.Helper()
	of := network.GetCookiesParams{URLs: []string{link}}
	for _, c := range browsertest.Call(p.Tab, network.GetCookies, of).Cookies {
		names = append(names, c.Name)
	}
	return names
}

// app is an application on a user's machine or site, with a page for returning from the sign-in.
type app struct {
	*httptest.Server
	answers chan url.Values
}

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{answers: make(chan url.Values, 20)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			a.answers <- r.URL.Query()
			fmt.Fprint(w, "<!doctype html><title>back at the application</title><main>You can close this page.</main>")
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *app) redirect() string { return a.URL + "/callback" }

// answer returns the parameters of the browser's last return.
func (a *app) answer(t *testing.T) (q url.Values) {
	t.Helper()
	select {
	case q = <-a.answers:
	case <-time.After(wait.Bound):
		t.Fatal("the browser did not come back to the application")
	}
	return q
}

// quiet fails the test if the browser has come back to the client by the time it shows its page.
func (a *app) quiet(t *testing.T) {
	t.Helper()
	select {
	case q := <-a.answers:
		t.Errorf("the application got %s", strings.ReplaceAll(q.Encode(), "&", " "))
	default:
	}
}
