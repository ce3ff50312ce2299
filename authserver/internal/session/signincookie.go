package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/securecookie"
)

// maxSignIns limits the concurrent sign-ins at providers per browser. The oldest are dropped, so
// that the cookies stay within the limits of servers.
const maxSignIns = 8

// SignIn is an authorization request at a provider, in the form that the browser holds.
type SignIn struct {
	State, Binding string // from the authorization request; see package delegation
	// UserID is the user who was signed in at the start, or "" for a new user. Another user of the
	// same browser must not finish it.
	UserID    string
	ExpiresAt time.Time
}

// signInCookie is the content of the cookie of a sign-in.
type signInCookie struct {
	Binding string `json:"b"`
	UserID  string `json:"u,omitempty"`
	Expires int64  `json:"e"`
}

// SetSignIn sets the cookie that binds the authorization request to the browser. Call it after the
// user has approved, in the response that sends the browser to the provider (AS-220, AS-221). The
// cookie expires with the request.
func (m *Manager) SetSignIn(w http.ResponseWriter, r *http.Request, s SignIn) {
	m.limitSignIns(w, r)
	name := m.signInName(s.State)
	value, err := m.cookies[0].Encode(name, signInCookie{s.Binding, s.UserID, s.ExpiresAt.Unix()})
	if err != nil {
		panic("session: " + err.Error()) // short strings always encode
	}
	http.SetCookie(w, m.cookie(name, value, s.ExpiresAt.Sub(m.now())))
}

// SignIn returns the sign-in with a state, if it started in this browser.
func (m *Manager) SignIn(r *http.Request, state string) (SignIn, bool) {
	c, err := r.Cookie(m.signInName(state))
	if state == "" || err != nil {
		return SignIn{}, false
	}
	held, ok := m.openSignIn(c)
	if !ok {
		return SignIn{}, false
	}
	return SignIn{state, held.Binding, held.UserID, time.Unix(held.Expires, 0)}, true
}

// EndSignIn removes the cookie of a finished sign-in.
func (m *Manager) EndSignIn(w http.ResponseWriter, state string) {
	http.SetCookie(w, m.cookie(m.signInName(state), "", -time.Second))
}

func (m *Manager) openSignIn(c *http.Cookie) (signInCookie, bool) {
	var held signInCookie
	err := securecookie.DecodeMulti(c.Name, c.Value, &held, m.cookies...)
	return held, err == nil && held.Expires > m.now().Unix()
}

// limitSignIns makes room for one more sign-in. It keeps unreadable cookies: another server on the
// host may have set them, and they expire.
func (m *Manager) limitSignIns(w http.ResponseWriter, r *http.Request) {
	type found struct {
		name    string
		expires int64
	}
	var begun []found
	for _, c := range r.Cookies() {
		if !strings.HasPrefix(c.Name, m.signIn) {
			continue
		}
		if held, ok := m.openSignIn(c); ok {
			begun = append(begun, found{c.Name, held.Expires})
		}
	}
	slices.SortStableFunc(begun, func(a, b found) int { return cmp.Compare(b.expires, a.expires) })
	for _, f := range begun[min(len(begun), maxSignIns-1):] {
		http.SetCookie(w, m.cookie(f.name, "", -time.Second))
	}
}

// signInName returns the cookie name of a sign-in. Each has a different name, so that sign-ins in
// two tabs do not interfere. It reveals nothing about the state.
func (m *Manager) signInName(state string) string {
	sum := sha256.Sum256([]byte(state))
	return m.signIn + base64.RawURLEncoding.EncodeToString(sum[:6])
}
