package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const redirect = "http://127.0.0.1:1/callback" // nothing listens there; the answer is read from the Location header

// target is the server under load.
type target struct {
	o        options
	http     *http.Client
	meta     document
	clientID string
}

type document struct {
	Issuer       string `json:"issuer"`
	Authorize    string `json:"authorization_endpoint"`
	Token        string `json:"token_endpoint"`
	Register     string `json:"registration_endpoint"`
	Introspect   string `json:"introspection_endpoint"`
	JWKS         string `json:"jwks_uri"`
	metadataPath string
}

func newTarget(o options) (*target, error) {
	t := &target{o: o, http: &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: o.workers, MaxConnsPerHost: o.workers},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	t.meta.metadataPath = strings.TrimSuffix(o.issuer, "/") + "/.well-known/oauth-authorization-server"
	if err := t.getJSON(t.meta.metadataPath, &t.meta); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	id, err := t.register()
	t.clientID = id
	return t, err
}

func (t *target) scenarios() []scenario {
	all := []scenario{
		{"metadata", func() (func() error, error) {
			return func() error { return t.getJSON(t.meta.metadataPath, nil) }, nil
		}},
		{"jwks", func() (func() error, error) { return func() error { return t.getJSON(t.meta.JWKS, nil) }, nil }},
		{"register", func() (func() error, error) { return func() error { _, err := t.register(); return err }, nil }},
		{"authorize+code", t.signedIn},
		{"refresh", t.refreshing},
	}
	if t.o.clientID == "" {
		return all
	}
	return append(all,
		scenario{"client_credentials", func() (func() error, error) {
			return func() error {
				_, err := t.token(url.Values{"grant_type": {"client_credentials"}}, true)
				return err
			}, nil
		}},
		scenario{"introspect", t.introspecting})
}

// signedIn is a browser with a session and a remembered consent: each operation is
// one authorization request and one code exchange.
func (t *target) signedIn() (func() error, error) {
	p, err := t.newPerson()
	if err != nil {
		return nil, err
	}
	return func() error { _, err := p.signIn(); return err }, nil
}

func (t *target) refreshing() (func() error, error) {
	p, err := t.newPerson()
	if err != nil {
		return nil, err
	}
	reply, err := p.signIn()
	if err != nil {
		return nil, err
	}
	return func() error {
		next, err := t.token(url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {reply.RefreshToken}, "client_id": {t.clientID}}, false)
		if err == nil {
			reply = next
		}
		return err
	}, nil
}

func (t *target) introspecting() (func() error, error) {
	reply, err := t.token(url.Values{"grant_type": {"client_credentials"}}, true)
	if err != nil {
		return nil, err
	}
	return func() error {
		body, err := t.post(t.meta.Introspect, url.Values{"token": {reply.AccessToken}}, true)
		if err == nil && !bytes.Contains(body, []byte(`"active":true`)) {
			err = fmt.Errorf("not active: %s", body)
		}
		return err
	}, nil
}

func (t *target) register() (string, error) {
	body, _ := json.Marshal(map[string]any{
		"client_name": "load", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none",
	})
	resp, err := t.http.Post(t.meta.Register, "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	var out struct {
		ClientID string `json:"client_id"`
	}
	err = decode(resp, http.StatusCreated, &out)
	return out.ClientID, err
}

func (t *target) getJSON(target string, out any) error {
	resp, err := t.http.Get(target)
	if err != nil {
		return err
	}
	return decode(resp, http.StatusOK, out)
}

func decode(resp *http.Response, want int, out any) error {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != want {
		return fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

func (t *target) token(form url.Values, asMachine bool) (oauth.TokenResponse, error) {
	var reply oauth.TokenResponse
	body, err := t.post(t.meta.Token, form, asMachine)
	if err == nil {
		err = json.Unmarshal(body, &reply)
	}
	return reply, err
}

func (t *target) post(endpoint string, form url.Values, asMachine bool) ([]byte, error) {
	req, err := http.NewRequest(http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if asMachine {
		req.SetBasicAuth(t.o.clientID, t.o.clientSecret)
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	return body, err
}

// person is a browser that has signed in and approved once.
type person struct {
	*target
	jar *cookiejar.Jar
}

var stepField = regexp.MustCompile(`name="step" value="([^"]+)"`)

func (t *target) newPerson() (*person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &person{t, jar}
	query, _ := p.request()
	page, err := p.browse(http.MethodGet, t.meta.Authorize+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	page, err = p.submit(page, "/login", url.Values{"username": {t.o.user}, "password": {t.o.password}})
	if err != nil {
		return nil, err
	}
	page, err = p.browse(http.MethodGet, p.absolute(page.location), nil)
	if err == nil && page.location == "" {
		_, err = p.submit(page, "/consent", url.Values{"decision": {"approve"}})
	}
	return p, err
}

func (p *person) request() (query url.Values, verifier string) {
	verifier = secrets.Token("")
	return url.Values{
		"response_type": {"code"}, "client_id": {p.clientID}, "redirect_uri": {redirect}, "state": {"load"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.S256},
	}, verifier
}

// signIn asks for a code, which a remembered consent gives at once, and exchanges it.
func (p *person) signIn() (oauth.TokenResponse, error) {
	query, verifier := p.request()
	page, err := p.browse(http.MethodGet, p.meta.Authorize+"?"+query.Encode(), nil)
	if err != nil {
		return oauth.TokenResponse{}, err
	}
	back, err := url.Parse(page.location)
	if err != nil || back.Query().Get("code") == "" {
		return oauth.TokenResponse{}, fmt.Errorf("no code: %q", page.location)
	}
	return p.token(url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "client_id": {p.clientID},
		"redirect_uri": {redirect}, "code_verifier": {verifier},
	}, false)
}

type page struct{ location, body string }

// submit posts the form of a page whose action ends with path.
func (p *person) submit(pg page, path string, form url.Values) (page, error) {
	i := strings.Index(pg.body, path+`"`)
	if i < 0 {
		return page{}, fmt.Errorf("no form for %s in: %.300s", path, pg.body)
	}
	m := stepField.FindStringSubmatch(pg.body[i:])
	if m == nil {
		return page{}, fmt.Errorf("no step in the form for %s", path)
	}
	form.Set("step", html.UnescapeString(m[1]))
	next, err := p.browse(http.MethodPost, p.o.issuer+path, form)
	if err == nil && next.location == "" {
		err = fmt.Errorf("%s was not accepted: %.300s", path, next.body)
	}
	return next, err
}

func (p *person) absolute(location string) string {
	base, err := url.Parse(p.meta.Authorize)
	if err != nil {
		return location
	}
	u, err := base.Parse(location)
	if err != nil {
		return location
	}
	return u.String()
}

func (p *person) browse(method, target string, form url.Values) (page, error) {
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
	return page{resp.Header.Get("Location"), string(body)}, err
}
