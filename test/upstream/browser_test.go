package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
)

// chromium returns the path of a browser. Without one the test is skipped; with
// CI=true that is a failure.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no Chromium: apt-get install chromium")
	}
	t.Skip("no Chromium: apt-get install chromium")
	return ""
}

// person has a browser of their own, and accounts.
type person struct {
	t   *testing.T
	ctx context.Context
	idptest.User
	refuses string   // the host at which they say no: "provider" or "mcp-authd"
	clicks  []string // which buttons they pressed, where
	pages   []page   // what they were shown before they pressed them
}

// page is what a browser shows.
type page struct {
	URL, Title, Text            string
	Login, Allow, Approve, Back bool
	Links                       []string // "text address"
}

// newPerson starts a fresh Chromium.
func newPerson(t *testing.T, u idptest.User) *person {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return &person{t: t, ctx: ctx, User: u}
}

// look is null between two pages, and for those that send the browser on by themselves:
// ours on the way to a provider, and a form with the provider's answer.
const look = `JSON.stringify(document.readyState != 'complete' || window.left || document.title.startsWith('Continue at ')
	|| document.querySelector('form[action*="/callback/"] input[name=state]') ? null : {
	url: location.href, title: document.title, text: document.body.innerText,
	login: !!document.querySelector('input[name=login]'), allow: !!document.querySelector('button[value=allow]'),
	approve: !!document.querySelector('button[value=approve]'), back: document.title == 'back at the application',
	links: [...document.querySelectorAll('a[href], form button')].map(a => a.innerText.trim() + ' ' + (a.href || '')),
})`

// look waits until the browser shows a page that it was not told to leave.
func (p *person) look() (page, error) {
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		out, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](look))
		if err != nil || out == "null" {
			last = err // between two pages
			continue
		}
		var shown page
		return shown, json.Unmarshal([]byte(out), &shown)
	}
	return page{}, fmt.Errorf("the browser shows nothing: %v", last)
}

// open types an address.
func (p *person) open(link string) (page, error) {
	if err := chromedp.Do(p.ctx, chromedp.Navigate(link)); err != nil {
		return page{}, err
	}
	return p.look()
}

// press clicks a button or a link and waits for what comes.
func (p *person) press(selector string) (page, error) {
	shown, err := p.look()
	if err != nil {
		return shown, err
	}
	u, err := url.Parse(shown.URL)
	if err != nil {
		return shown, err
	}
	label, err := chromedp.Run(p.ctx,
		chromedp.Evaluate[string](
			fmt.Sprintf("window.left = true, document.querySelector(%q).innerText.trim()", selector),
		))
	if err != nil {
		return shown, fmt.Errorf("no %s on %s: %w", selector, shown.URL, err)
	}
	p.clicks = append(p.clicks, u.Host+": "+label)
	p.pages = append(p.pages, shown)
	if err := chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		return shown, err
	}
	return p.look()
}

// goOn does what the pages ask for until the browser is at the application, or shows a
// page without anything to do.
func (p *person) goOn(shown page) (page, error) {
	var err error
	for range 12 {
		switch {
		case shown.Back:
			return shown, nil
		case shown.Login && p.refuses == "provider":
			shown, err = p.press("button[value=deny]")
		case shown.Login:
			if err = chromedp.Do(p.ctx, chromedp.SetValue(chromedp.CSS("input[name=login]"), p.Email),
				chromedp.SetValue(chromedp.CSS("input[name=password]"), p.Password)); err == nil {
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

// visit opens a link and does what the pages ask for. It fails the test unless that leads
// to the application.
func (p *person) visit(t *testing.T, link string) page {
	t.Helper()
	shown := p.see(t, link)
	if !shown.Back {
		t.Fatalf("the browser is not at the application but at %s:\n%s", shown.URL, shown.Text)
	}
	return shown
}

// see opens a link, does what the pages ask for, and returns the last of them.
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

// cookies returns the names of the cookies that the browser has for a URL.
func (p *person) cookies(t *testing.T, link string) (names []string) {
	t.Helper()
	out, err := chromedp.Call(p.ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{link}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range out.Cookies {
		names = append(names, c.Name)
	}
	return names
}

// app is an application that runs on a person's machine or site, with a page that the
// browser comes back to.
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

// answer is what the browser brought, the last of it if it came more than once.
func (a *app) answer(t *testing.T) (q url.Values) {
	t.Helper()
	select {
	case q = <-a.answers:
	case <-time.After(time.Minute):
		t.Fatal("the browser did not come back to the application")
	}
	return q
}

// quiet fails the test if the browser brought anything.
func (a *app) quiet(t *testing.T) {
	t.Helper()
	select {
	case q := <-a.answers:
		t.Errorf("the application got %s", strings.ReplaceAll(q.Encode(), "&", " "))
	case <-time.After(100 * time.Millisecond):
	}
}
