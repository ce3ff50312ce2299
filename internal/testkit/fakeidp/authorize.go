package fakeidp

import (
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

type session struct {
	id      string // sid
	subject string
	began   time.Time
	ended   bool
}

// authorization is the data of an authorization code.
type authorization struct {
	session     *session
	redirectURI string
	challenge   string
	nonce       string
	scopes      []string
	spent       bool
}

func (u *Upstream) authorize(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	q := r.Form
	back, err := url.Parse(q.Get("redirect_uri"))
	if q.Get("client_id") != u.ClientID || err != nil || back.Host == "" {
		u.violate("authorize: unknown client or redirect URI")
		http.Error(w, "unknown client or redirect_uri", http.StatusBadRequest)
		return
	}
	if problem := u.refuse(q); problem != "" {
		u.respond(w, r, back, url.Values{"error": {problem}, "error_description": {u.behaviour.DenyDescription}})
		return
	}
	if u.behaviour.Interactive && r.Method == http.MethodGet {
		u.form(w, q)
		return
	}
	if u.behaviour.Interactive && q.Get("decision") != "approve" {
		u.respond(w, r, back, url.Values{"error": {"access_denied"}, "error_description": {"The person said no."}})
		return
	}
	p := u.pick(q)
	if p == nil {
		u.respond(w, r, back, url.Values{"error": {"access_denied"}})
		return
	}
	s := &session{id: "sid-" + random(9), subject: p.Subject, began: u.now()}
	u.sessions = append(u.sessions, s)
	code := "code-" + random(18)
	u.codes[code] = &authorization{
		session: s, redirectURI: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), nonce: q.Get("nonce"),
		scopes: strings.Fields(q.Get("scope")),
	}
	u.respond(w, r, back, url.Values{"code": {code}})
}

// refuse returns the error code for an invalid request, or for a request to deny.
func (u *Upstream) refuse(q url.Values) string {
	switch {
	case u.behaviour.Deny != "":
		return u.behaviour.Deny
	case q.Get("response_type") != "code":
		return "unsupported_response_type"
	case q.Has("resource"):
		return "invalid_target"
	case q.Get("code_challenge") == "" || q.Get("code_challenge_method") != "S256":
		u.violate("authorize: no PKCE with S256")
		return "invalid_request"
	}
	return ""
}

// pick returns the user who signs in: the form's choice, or else the login hint, or else the first
// user.
func (u *Upstream) pick(q url.Values) *Person {
	for _, name := range []string{q.Get("person"), q.Get("login_hint")} {
		i := slices.IndexFunc(u.people, func(p Person) bool {
			return name != "" && (name == p.Subject || name == p.Login || name == p.Email)
		})
		if i >= 0 {
			return &u.people[i]
		}
	}
	if len(u.people) == 0 {
		return nil
	}
	return &u.people[0]
}

// respond sends the authorization response in the query or as a form that submits itself.
func (u *Upstream) respond(w http.ResponseWriter, r *http.Request, back *url.URL, answer url.Values) {
	if state := r.Form.Get("state"); state != "" {
		answer.Set("state", state)
	}
	if !u.behaviour.NoResponseIssuer {
		answer.Set("iss", u.URL)
	}
	if u.behaviour.ResponseIssuer != "" {
		answer.Set("iss", u.behaviour.ResponseIssuer)
	}
	if r.Form.Get("response_mode") == "form_post" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = postPage.Execute(w, map[string]any{"To": back.String(), "Values": answer})
		return
	}
	q := back.Query()
	for name, values := range answer {
		q[name] = values
	}
	back.RawQuery = q.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

var (
	postPage = template.Must(template.New("post").Parse(`<!doctype html><title>Fake upstream</title><body onload="document.forms[0].submit()">
<form method="post" action="{{.To}}">{{range $n, $v := .Values}}<input type="hidden" name="{{$n}}" value="{{index $v 0}}">{{end}}<button>Continue</button></form>`))
	signInPage = template.Must(template.New("sign in").Parse(`<!doctype html><html lang="en"><title>Fake upstream: sign in</title><h1>Fake upstream</h1>
<form method="post" action="/authorize">{{range $n, $v := .Query}}<input type="hidden" name="{{$n}}" value="{{index $v 0}}">{{end}}
<p><label>Account <select name="person">{{range .People}}<option value="{{.Subject}}">{{.Name}}</option>{{end}}</select></label>
<p>It asks for: {{index .Query.scope 0}}
<p><button name="decision" value="approve">Approve</button> <button name="decision" value="deny">Deny</button></form>`))
)

func (u *Upstream) form(w http.ResponseWriter, q url.Values) {
	if !q.Has("scope") {
		q.Set("scope", "")
	}
	people := slices.Clone(u.people)
	if p := u.pick(q); p != nil { // the first in the list is preselected
		slices.SortStableFunc(people, func(a, b Person) int {
			return strings.Compare(fmt.Sprint(a.Subject != p.Subject), fmt.Sprint(b.Subject != p.Subject))
		})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = signInPage.Execute(w, map[string]any{"Query": q, "People": people})
}

// Visit follows an authorization request like a browser and returns the callback URL. Its query has
// the parameters even if they were to be posted. With Interactive, Visit approves.
func (u *Upstream) Visit(authorizeURL string) (*url.URL, error) {
	at, err := url.Parse(authorizeURL)
	if err != nil {
		return nil, err
	}
	q := at.Query()
	formPost := q.Get("response_mode") == "form_post"
	q.Del("response_mode")
	q.Set("decision", "approve")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.PostForm(at.Scheme+"://"+at.Host+at.Path, q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return nil, fmt.Errorf("fakeidp: no redirect (form_post: %v) but %s: %s", formPost, resp.Status, body)
	}
	return back, nil
}
