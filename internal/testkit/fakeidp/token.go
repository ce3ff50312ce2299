package fakeidp

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

type accessToken struct {
	session *session
	scopes  []string
	expires time.Time // zero: never
}

type refreshToken struct {
	session *session
	scopes  []string
	spent   bool
}

func (u *Upstream) token(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.authenticate(r) {
		u.violate("token: client authentication")
		u.tokenError(w, r, http.StatusUnauthorized, "invalid_client")
		return
	}
	f := r.PostForm
	if f.Has("resource") {
		u.tokenError(w, r, http.StatusBadRequest, "invalid_target")
		return
	}
	switch f.Get("grant_type") {
	case "authorization_code":
		u.redeem(w, r)
	case "refresh_token":
		u.renew(w, r)
	default:
		u.tokenError(w, r, http.StatusBadRequest, "unsupported_grant_type")
	}
}

func (u *Upstream) tokenError(w http.ResponseWriter, r *http.Request, status int, code string) {
	if u.behaviour.ErrorsAs200 {
		status = http.StatusOK
	}
	answerToken(w, r, status,
		map[string]any{"error": code, "error_description": "The fake provider says " + code + "."})
}

// authenticate checks the client's id and secret, from the Authorization header or from the form.
func (u *Upstream) authenticate(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		if r.PostForm.Has("client_secret") {
			u.violate("token: two ways to authenticate")
			return false
		}
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	return id == u.ClientID && subtle.ConstantTimeCompare([]byte(secret), []byte(u.ClientSecret)) == 1
}

func (u *Upstream) redeem(w http.ResponseWriter, r *http.Request) {
	f := r.PostForm
	a := u.codes[f.Get("code")]
	sum := sha256.Sum256([]byte(f.Get("code_verifier")))
	switch {
	case a == nil:
		u.violate("token: unknown code")
	case a.spent:
		u.violate("token: code used twice")
		a.session.ended = true
	case a.redirectURI != f.Get("redirect_uri"):
		u.violate("token: another redirect URI")
	case a.challenge != base64.RawURLEncoding.EncodeToString(sum[:]):
		u.violate("token: wrong PKCE verifier")
	default:
		a.spent = true
		u.issue(w, r, a.session, u.granted(a.scopes), a.nonce, "", false)
		return
	}
	u.tokenError(w, r, http.StatusBadRequest, "invalid_grant")
}

func (u *Upstream) granted(asked []string) []string {
	if u.behaviour.Grant == nil {
		return asked
	}
	return slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return !slices.Contains(u.behaviour.Grant, s) })
}

func (u *Upstream) renew(w http.ResponseWriter, r *http.Request) {
	old := r.PostForm.Get("refresh_token")
	t := u.refresh[old]
	switch {
	case u.behaviour.RefreshDenied != "":
		u.tokenError(w, r, http.StatusBadRequest, u.behaviour.RefreshDenied)
	case t == nil || !u.live(t.session):
		u.tokenError(w, r, http.StatusBadRequest, "invalid_grant")
	case t.spent:
		// A rotated token was reused: it was stolen, or the client lost a response.
		u.violate("token: rotated refresh token used again")
		t.session.ended = true
		u.tokenError(w, r, http.StatusBadRequest, "invalid_grant")
	default:
		t.spent = !u.behaviour.StaticRefresh
		s := t.session
		if other := u.behaviour.RenewAs; other != "" && other != s.subject {
			s = &session{id: "sid-" + random(9), subject: other, began: u.now()}
			u.sessions = append(u.sessions, s)
		}
		u.issue(w, r, s, u.granted(t.scopes), "", old, true)
	}
}

// live reports whether a session is active. The caller holds u.mu.
func (u *Upstream) live(s *session) bool { return !s.ended && u.person(s.subject) != nil }

func (u *Upstream) issue(
	w http.ResponseWriter, r *http.Request, s *session, scopes []string, nonce, old string, refreshing bool,
) {
	answer := map[string]any{"token_type": "Bearer"}
	t := &accessToken{session: s, scopes: scopes}
	if ttl := u.behaviour.AccessTTL; ttl >= 0 {
		if ttl == 0 {
			ttl = time.Hour
		}
		t.expires = u.now().Add(ttl)
		answer["expires_in"] = int(ttl.Seconds())
	}
	token := "at-" + random(18)
	u.access[token] = t
	answer["access_token"] = token
	if !u.behaviour.NoScope {
		answer["scope"] = strings.Join(scopes, " ")
	}
	if !u.behaviour.NoRefresh && (!u.behaviour.OfflineAccess || slices.Contains(scopes, "offline_access")) &&
		(old == "" || !u.behaviour.StaticRefresh) {
		next := "rt-" + random(18)
		u.refresh[next] = &refreshToken{session: s, scopes: scopes}
		answer["refresh_token"] = next
	}
	if slices.Contains(scopes, "openid") && !u.behaviour.NoIDToken && !(refreshing && u.behaviour.NoIDTokenAtRefresh) {
		answer["id_token"] = u.idToken(s, nonce, token)
	}
	answerToken(w, r, http.StatusOK, answer)
}

// answerToken writes the response of /token. GitHub's differs: it is a form unless JSON is
// requested, scopes are separated by commas, and errors have status 200.
func answerToken(w http.ResponseWriter, r *http.Request, status int, answer map[string]any) {
	if !strings.HasPrefix(r.URL.Path, "/login/oauth/") {
		writeJSON(w, status, answer)
		return
	}
	if scope, ok := answer["scope"].(string); ok {
		answer["scope"] = strings.ReplaceAll(scope, " ", ",")
	}
	if strings.Contains(r.Header.Get("Accept"), "json") {
		writeJSON(w, http.StatusOK, answer)
		return
	}
	form := url.Values{}
	for name, value := range answer {
		form.Set(name, fmt.Sprint(value))
	}
	w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	_, _ = io.WriteString(w, form.Encode())
}
