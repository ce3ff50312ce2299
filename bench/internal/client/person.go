package client

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Person is the browser of a user with an account. It has its own cookies.
type Person struct {
	*Client
	name, password string
	jar            *cookiejar.Jar
}

// NewPerson returns a browser that is new to the server.
func (c *Client) NewPerson(name, password string) (*Person, error) {
	jar, err := cookiejar.New(nil)
	return &Person{c, name, password, jar}, err
}

// patience is how long a user keeps trying while the server is busy.
const patience = time.Minute

var stepField = regexp.MustCompile(`name="step" value="([^"]+)"`)

// SignIn runs a whole sign-in: login page, password, consent unless it is remembered, and the code
// exchange.
func (p *Person) SignIn() (oauth.TokenResponse, error) {
	query, verifier := p.request()
	pg, err := p.browse(http.MethodGet, p.Metadata.Authorize+"?"+query.Encode(), nil)
	if err != nil {
		return oauth.TokenResponse{}, err
	}
	pg, err = p.submit(pg, "/login", url.Values{"username": {p.name}, "password": {p.password}})
	if err != nil {
		return oauth.TokenResponse{}, err
	}
	pg, err = p.browse(http.MethodGet, p.absolute(pg.location), nil)
	if err == nil && pg.location == "" {
		pg, err = p.submit(pg, "/consent", url.Values{"decision": {"approve"}})
	}
	if err != nil {
		return oauth.TokenResponse{}, err
	}
	return p.exchange(pg, verifier)
}

// Again signs in with the session and the consent of an earlier sign-in: one authorization request
// and one code exchange.
func (p *Person) Again() (oauth.TokenResponse, error) {
	query, verifier := p.request()
	pg, err := p.browse(http.MethodGet, p.Metadata.Authorize+"?"+query.Encode(), nil)
	if err != nil {
		return oauth.TokenResponse{}, err
	}
	return p.exchange(pg, verifier)
}

func (p *Person) request() (query url.Values, verifier string) {
	verifier = secrets.Token("")
	return url.Values{
		"response_type": {"code"}, "client_id": {p.id}, "redirect_uri": {redirect}, "state": {"load"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.S256},
	}, verifier
}

func (p *Person) exchange(pg page, verifier string) (oauth.TokenResponse, error) {
	back, err := url.Parse(pg.location)
	if err != nil || back.Query().Get("code") == "" {
		return oauth.TokenResponse{}, fmt.Errorf("no code: %q", pg.location)
	}
	return p.token(url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "client_id": {p.id},
		"redirect_uri": {redirect}, "code_verifier": {verifier},
	}, false)
}

type page struct {
	location, body string
	status         int
	again          time.Duration // Retry-After of the server
}

// submit posts the form of a page whose action ends with path. It repeats that while the server is
// busy, as users do.
func (p *Person) submit(pg page, path string, form url.Values) (page, error) {
	i := strings.Index(pg.body, path+`"`)
	if i < 0 {
		return page{}, fmt.Errorf("no form for %s in: %.300s", path, pg.body)
	}
	m := stepField.FindStringSubmatch(pg.body[i:])
	if m == nil {
		return page{}, fmt.Errorf("no step in the form for %s", path)
	}
	form.Set("step", html.UnescapeString(m[1]))
	for end := time.Now().Add(patience); ; {
		next, err := p.browse(http.MethodPost, p.config.Issuer+path, form)
		if err != nil || next.location != "" {
			return next, err
		}
		if next.again == 0 || time.Now().After(end) {
			return next, fmt.Errorf("%s was not accepted, status %d: %.300s", path, next.status, next.body)
		}
		time.Sleep(next.again)
	}
}

func (p *Person) absolute(location string) string {
	base, err := url.Parse(p.Metadata.Authorize)
	if err != nil {
		return location
	}
	u, err := base.Parse(location)
	if err != nil {
		return location
	}
	return u.String()
}

func (p *Person) browse(method, target string, form url.Values) (page, error) {
	req, err := http.NewRequest(method, target, strings.NewReader(form.Encode()))
	if err != nil {
		return page{}, err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range p.jar.Cookies(req.URL) {
		req.AddCookie(c)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return page{}, err
	}
	defer resp.Body.Close()
	p.jar.SetCookies(req.URL, resp.Cookies())
	body, err := io.ReadAll(resp.Body)
	again, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if absent
	return page{
		location: resp.Header.Get("Location"),
		body:     string(body),
		status:   resp.StatusCode,
		again:    time.Duration(again) * time.Second,
	}, err
}
