// Package visit plays a user who signs in. It opens the authorization URL, submits the forms of the
// pages like a browser, and stops before the browser would return to the client.
package visit

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
	"sync"
	"time"
)

// Person is a user with a browser that submits forms and keeps cookies.
type Person struct {
	Username, Password string
	// Decision is the button to press on the consent page. Default: approve.
	Decision string
	// Elsewhere makes the user state that the client runs on another computer, and copy the
	// displayed response.
	Elsewhere bool
	// Scopes are the scopes to select if the page offers a choice.
	Scopes []string
	Pages  []string // the pages shown; read it after all visits have ended

	shown      sync.Mutex // guards Pages, because visits may be concurrent
	browser    *http.Client
	setupToken string
}

func (p *Person) show(page string) {
	p.shown.Lock()
	defer p.shown.Unlock()
	p.Pages = append(p.Pages, page)
}

// NewPerson returns a user with a fresh browser.
func NewPerson(username, password string) *Person {
	jar, _ := cookiejar.New(nil) // cannot fail without options
	return &Person{Username: username, Password: password, Decision: "approve", browser: &http.Client{
		Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var (
	formTag   = regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`)
	actionTag = regexp.MustCompile(`action="([^"]*)"`)
	inputTag  = regexp.MustCompile(`<input[^>]*>`)
	nameAttr  = regexp.MustCompile(`name="([^"]*)"`)
	answerTag = regexp.MustCompile(`<textarea id="answer"[^>]*>([^<]*)</textarea>`)
	valueAttr = regexp.MustCompile(`value="([^"]*)"`)

	anotherTag = regexp.MustCompile(`href="([^"]*account=another[^"]*)"`)
)

// errNoWay means that the pages did not lead back to the client.
var errNoWay = errors.New("visit: the pages do not lead to the client")

// Visit opens an authorization URL and completes sign-in and consent as the pages require. It
// returns the client URL that the browser would open next, without opening it.
func (p *Person) Visit(authorizeURL string) (*url.URL, error) {
	at, err := url.Parse(authorizeURL)
	if err != nil {
		return nil, err
	}
	home := at.Host
	resp, body, err := p.get(at)
	for range 10 {
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 300 && resp.StatusCode < 400 {
			next, err := at.Parse(resp.Header.Get("Location"))
			if err != nil {
				return nil, err
			}
			if next.Host != home || next.Scheme != at.Scheme {
				return next, nil
			}
			at = next
			if resp, body, err = p.get(at); err != nil {
				return nil, err
			}
			continue
		}
		p.show(body)
		if shown := answerTag.FindStringSubmatch(body); shown != nil {
			return url.Parse(html.UnescapeString(shown[1]))
		}
		if strings.Contains(body, `action="/choose"`) {
			resp, body, err = p.choose(at, body)
			continue
		}
		resp, body, err = p.submit(at, body)
	}
	return nil, errNoWay
}

// Answer opens a page of the server itself. It signs in and decides until a page asks nothing more.
func (p *Person) Answer(link string) error {
	back, err := p.Visit(link)
	if err == nil {
		return fmt.Errorf("visit: the pages lead to %s", back)
	}
	if n := len(p.Pages); errors.Is(err, errNoWay) && n > 0 && !formTag.MatchString(p.Pages[n-1]) {
		return nil
	}
	return err
}

// SetUp opens a setup link and creates the user's account.
func (p *Person) SetUp(link string) error {
	at, err := url.Parse(link)
	if err != nil {
		return err
	}
	p.setupToken = strings.TrimPrefix(at.Fragment, "token=") // the page's script puts it into the field
	at.Fragment = ""
	_, body, err := p.get(at)
	if err != nil {
		return err
	}
	_, body, err = p.submit(at, body)
	p.Pages = append(p.Pages, body)
	return err
}

// Beside returns another user of the same browser.
func (p *Person) Beside(username, password string) *Person {
	return &Person{Username: username, Password: password, Decision: "approve", browser: p.browser}
}

// choose continues as this user from the page for choosing an account. It picks the account if it
// is signed in, and signs in otherwise.
func (p *Person) choose(at *url.URL, body string) (*http.Response, string, error) {
	for _, form := range formTag.FindAllString(body, -1) {
		if strings.Contains(form, "<bdi>"+html.EscapeString(p.Username)+"</bdi>") {
			return p.submit(at, form)
		}
	}
	another := anotherTag.FindStringSubmatch(body)
	if another == nil {
		return nil, "", fmt.Errorf("%w: no other account can be used: %.500s", errNoWay, body)
	}
	to, err := at.Parse(html.UnescapeString(another[1]))
	if err != nil {
		return nil, "", err
	}
	return p.get(to)
}

func (p *Person) submit(at *url.URL, body string) (*http.Response, string, error) {
	form := formTag.FindString(body)
	action := actionTag.FindStringSubmatch(form)
	if action == nil {
		return nil, "", fmt.Errorf("%w: %.500s", errNoWay, body)
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
	if values.Has("password") {
		values.Set("username", p.Username)
		values.Set("password", p.Password)
		if values.Has("token") {
			values.Set("token", p.setupToken)
		}
	} else {
		values.Set("decision", p.Decision)
		if strings.Contains(form, `name="decision" value="continue"`) { // there is nothing to decide
			values.Set("decision", "continue")
		}
		if len(p.Scopes) > 0 && strings.Contains(body, `type="checkbox" name="scope"`) {
			values["scope"] = p.Scopes
		}
		if p.Elsewhere {
			values.Set("elsewhere", "show")
		}
	}
	return p.post(at, action[1], values)
}

// post submits a form to the action in its tag.
func (p *Person) post(at *url.URL, action string, values url.Values) (*http.Response, string, error) {
	target, err := at.Parse(html.UnescapeString(action))
	if err != nil {
		return nil, "", err
	}
	req, err := http.NewRequest(http.MethodPost, target.String(), strings.NewReader(values.Encode()))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", target.Scheme+"://"+target.Host)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, answer, err := p.do(req)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s answered %s: %.500s", target.Path, resp.Status, answer)
	}
	return resp, answer, err
}

func (p *Person) get(u *url.URL) (*http.Response, string, error) {
	req, err := http.NewRequest(http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Accept", "text/html")
	resp, body, err := p.do(req)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s answered %s: %.500s", u.Path, resp.Status, body)
	}
	return resp, body, err
}

func (p *Person) do(req *http.Request) (*http.Response, string, error) {
	resp, err := p.browser.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp, string(body), err
}
