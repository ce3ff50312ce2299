package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
)

// The levels of a requirement. SHOULD includes needs of several clients beyond the specifications.
const (
	must   = "MUST"
	should = "SHOULD"
)

// answer is a response of the server.
type answer struct {
	status int
	header http.Header
	body   []byte
	at     *url.URL
}

// is reports whether the body has the media type kind.
func (a *answer) is(kind string) bool {
	got, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	return err == nil && got == kind
}

// oauthError returns the error code in a JSON body, or "".
func (a *answer) oauthError() string {
	var e struct {
		Error string `json:"error"`
	}
	if !a.is("application/json") || json.Unmarshal(a.body, &e) != nil {
		return ""
	}
	return e.Error
}

// member returns a string member of a JSON body, or "".
func (a *answer) member(name string) string {
	var m map[string]any
	if json.Unmarshal(a.body, &m) != nil {
		return ""
	}
	s, _ := m[name].(string)
	return s
}

// says describes the response in a few words.
func (a *answer) says() string {
	s := fmt.Sprint("it answered ", a.status)
	if e := a.oauthError(); e != "" {
		s += " " + e
	}
	if to := a.header.Get("Location"); to != "" {
		if u, err := url.Parse(to); err == nil {
			e := u.Query().Get("error")
			u.RawQuery, u.Fragment = "", ""
			if s += " to " + u.String(); e != "" {
				s += " with " + e
			}
		}
	}
	return s
}

// back returns the redirect target if it is redirectURI with parameters, else nil.
func (a *answer) back(redirectURI string) *url.URL {
	to := a.header.Get("Location")
	behind, isBack := strings.CutPrefix(to, redirectURI)
	isBack = isBack && (strings.HasPrefix(behind, "?") || strings.HasPrefix(behind, "#"))
	if a.status < 300 || a.status > 399 || !isBack {
		return nil
	}
	u, err := url.Parse(to)
	if err != nil {
		return nil
	}
	return u
}

// do sends a request, counted and paused, to the issuer's origin only. Metadata and Location
// headers could name other servers, even on this machine.
func (b *bench) do(req *http.Request) (*answer, error) {
	if err := discovery.CheckURL(req.URL.String()); err != nil {
		return nil, err
	}
	if discovery.Origin(req.URL.String()) != discovery.Origin(b.issuer) {
		return nil, fmt.Errorf("%s is not of the server that is tested", req.URL.Host)
	}
	if b.requests++; b.requests > MaxRequests {
		b.broken = fmt.Errorf("more than %d requests", MaxRequests)
		return nil, b.broken
	}
	if !b.loopback {
		select {
		case <-time.After(pause):
		case <-req.Context().Done():
		}
	}
	req.Header.Set("User-Agent", "mcp-authd-lab")
	resp, body, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	return &answer{resp.StatusCode, resp.Header, body, req.URL}, nil
}

func (b *bench) get(ctx context.Context, location string, header http.Header) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	return b.do(req)
}

// post sends a form.
func (b *bench) post(ctx context.Context, location, form string, header http.Header) (*answer, error) {
	return b.send(ctx, location, "application/x-www-form-urlencoded", form, header)
}

func (b *bench) send(ctx context.Context, location, kind, body string, header http.Header) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, location, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", kind)
	return b.do(req)
}

// The results of a check.

func (b *bench) add(id, level, what string, v Verdict, why string) {
	b.results = append(b.results, Result{id, level, what, v, why})
}

// want adds a pass or a failure.
func (b *bench) want(id, level, what string, good bool, why string, args ...any) {
	if good {
		b.add(id, level, what, Pass, "")
		return
	}
	b.add(id, level, what, Fail, fmt.Sprintf(why, args...))
}

func (b *bench) skip(id, level, what, why string) { b.add(id, level, what, Skipped, why) }

// judge checks a response. An err is a failure.
func (b *bench) judge(id, level, what string, a *answer, err error, good func(*answer) bool) {
	if err != nil {
		b.add(id, level, what, Fail, err.Error())
		return
	}
	b.want(id, level, what, good(a), "%s", a.says())
}

// refused returns a check for a 4xx response with one of the JSON error codes.
func refused(codes ...string) func(*answer) bool {
	return func(a *answer) bool {
		for _, c := range codes {
			if a.status >= 400 && a.status < 500 && a.oauthError() == c {
				return true
			}
		}
		return false
	}
}
