package idptest

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Person is a user with an account at providers, and with a browser without scripts. The browser
// keeps cookies, follows every redirect and submits every form.
type Person struct {
	User
	// Decision is the button to press if a page offers a choice.
	Decision string
	Pages    []string // the pages shown, in order
	Hops     []string // the URLs visited, in order

	browser *http.Client
}

// NewPerson returns a user with a fresh browser who agrees to everything.
func NewPerson(u User) *Person {
	jar, _ := cookiejar.New(nil) // cannot fail without options
	return &Person{User: u, Decision: "approve", browser: &http.Client{
		Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var (
	formTag   = regexp.MustCompile(`(?s)<form[^>]*method="?post.*?</form>`)
	actionTag = regexp.MustCompile(`<form[^>]*action="([^"]*)"`)
	inputTag  = regexp.MustCompile(`<input[^>]*>`)
	nameAttr  = regexp.MustCompile(`name="?([^">\s]+)`)
	valueAttr = regexp.MustCompile(`value="([^"]*)"`)
)

// ErrNoWay means that the pages did not lead to the expected URL.
var ErrNoWay = errors.New("idptest: the pages do not lead there")

// Visit opens a URL and continues until the browser would open a URL that begins with until. It
// returns that URL without opening it.
func (p *Person) Visit(link, until string) (*url.URL, error) {
	at, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodGet, link, nil)
	for range 20 {
		if err != nil {
			return nil, err
		}
		p.Hops = append(p.Hops, req.Method+" "+at.String())
		resp, body, err := p.do(req)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode >= 400:
			return nil, fmt.Errorf("%s answered %s: %.800s", at, resp.Status, body)
		case resp.StatusCode >= 300:
			if at, err = at.Parse(resp.Header.Get("Location")); err != nil {
				return nil, err
			}
			if strings.HasPrefix(at.String(), until) {
				return at, nil
			}
			req, err = http.NewRequest(http.MethodGet, at.String(), nil)
			if err != nil {
				return nil, err
			}
		default:
			p.Pages = append(p.Pages, body)
			if req, err = p.submit(at, body); err != nil {
				return nil, err
			}
			at = req.URL
		}
	}
	return nil, ErrNoWay
}

// submit returns the request that submits the first form of a page.
func (p *Person) submit(at *url.URL, body string) (*http.Request, error) {
	form := formTag.FindString(body)
	if form == "" {
		return nil, fmt.Errorf("%w: %s shows %.800s", ErrNoWay, at, body)
	}
	target := at
	if action := actionTag.FindStringSubmatch(form); action != nil {
		var err error
		if target, err = at.Parse(html.UnescapeString(action[1])); err != nil {
			return nil, err
		}
	}
	values := url.Values{}
	for _, in := range inputTag.FindAllString(form, -1) {
		if name := nameAttr.FindStringSubmatch(in); name != nil {
			value := ""
			if v := valueAttr.FindStringSubmatch(in); v != nil {
				value = html.UnescapeString(v[1])
			}
			values.Set(name[1], value)
		}
	}
	switch {
	case values.Has("login"):
		values.Set("login", p.Email)
		values.Set("password", p.Password)
	case strings.Contains(form, "decision"):
		values.Set("decision", p.Decision)
	case strings.Contains(form, "op.logoutForm"): // the button is outside of the form
		values.Set("logout", "yes")
	}
	req, err := http.NewRequest(http.MethodPost, target.String(), strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", target.Scheme+"://"+target.Host)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return req, nil
}

func (p *Person) do(req *http.Request) (*http.Response, string, error) {
	req.Header.Set("Accept", "text/html")
	resp, err := p.browser.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp, string(body), err
}
