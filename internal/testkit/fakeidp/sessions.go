package fakeidp

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// bearer returns the access token of a request, or nil if it is not valid.
func (u *Upstream) bearer(r *http.Request) *accessToken {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(scheme, "token") {
		return nil
	}
	return u.good(token)
}

func (u *Upstream) good(token string) *accessToken {
	t := u.access[token]
	if t == nil || !u.live(t.session) || !t.expires.IsZero() && !t.expires.After(u.now()) {
		return nil
	}
	return t
}

func (u *Upstream) userInfo(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.bearer(r)
	if t == nil {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return
	}
	p := u.person(t.session.subject)
	claims := p.claims()
	maps.Copy(claims, p.UserInfoOnly)
	claims["sub"] = p.Subject
	if u.behaviour.SignedUserInfo {
		claims["iss"], claims["aud"] = u.URL, u.ClientID
	}
	if u.behaviour.EditUserInfo != nil {
		u.behaviour.EditUserInfo(claims)
	}
	if u.behaviour.SignedUserInfo {
		w.Header().Set("Content-Type", "application/jwt")
		_, _ = io.WriteString(w, u.sign(map[string]any{}, claims))
		return
	}
	writeJSON(w, http.StatusOK, claims)
}

func (u *Upstream) introspect(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.authenticate(r) {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	token := r.PostForm.Get("token")
	t := u.good(token)
	if rt := u.refresh[token]; rt != nil && !rt.spent && u.live(rt.session) {
		t = &accessToken{session: rt.session, scopes: rt.scopes}
	}
	if t == nil {
		writeJSON(w, http.StatusOK, map[string]any{"active": false})
		return
	}
	answer := map[string]any{
		"active": true, "sub": t.session.subject, "scope": strings.Join(t.scopes, " "), "client_id": u.ClientID,
		"sid": t.session.id,
	}
	if u.behaviour.EditIntrospection != nil {
		u.behaviour.EditIntrospection(answer)
	}
	writeJSON(w, http.StatusOK, answer)
}

// revoke ends the session of an access or refresh token (RFC 7009).
func (u *Upstream) revoke(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.authenticate(r) {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	token := r.PostForm.Get("token")
	if t := u.access[token]; t != nil {
		t.session.ended = true
	}
	if t := u.refresh[token]; t != nil {
		t.session.ended = true
	}
	w.WriteHeader(http.StatusOK)
}

// RevokeAll ends every session of a user, as if the account were disabled.
func (u *Upstream) RevokeAll(subject string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.sessions {
		if s.subject == subject {
			s.ended = true
		}
	}
}

// RevokeSession ends one session.
func (u *Upstream) RevokeSession(sid string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.sessions {
		if s.id == sid {
			s.ended = true
		}
	}
}

// ExpireAccess invalidates all access tokens. Refresh tokens stay valid.
func (u *Upstream) ExpireAccess() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.access)
}

// Sessions returns the ids (sid) of a user's active sessions, oldest first.
func (u *Upstream) Sessions(subject string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []string
	for _, s := range u.sessions {
		if s.subject == subject && u.live(s) {
			out = append(out, s.id)
		}
	}
	return out
}

// Secrets returns every token and code ever issued, so that tests can search for leaks.
func (u *Upstream) Secrets() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := []string{u.ClientSecret}
	out = slices.AppendSeq(out, maps.Keys(u.codes))
	out = slices.AppendSeq(out, maps.Keys(u.access))
	return slices.AppendSeq(out, maps.Keys(u.refresh))
}

// LogoutToken returns a logout token for a session (OpenID Connect Back-Channel Logout 1.0 §2.4).
// edit may change it and may be nil. The session does not end.
func (u *Upstream) LogoutToken(subject, sid string, edit func(header, claims map[string]any)) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	header := map[string]any{"typ": "logout+jwt"}
	claims := map[string]any{
		"iss": u.URL, "aud": u.ClientID, "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": random(12),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	if subject != "" {
		claims["sub"] = subject
	}
	if sid != "" {
		claims["sid"] = sid
	}
	if edit != nil {
		edit(header, claims)
	}
	return u.sign(header, claims)
}

// SecurityEvent returns a security event token (RFC 8417) about a user for a receiver. edit may
// change it and may be nil. The provider's state does not change.
func (u *Upstream) SecurityEvent(
	audience, event, subject string, edit func(header, claims map[string]any),
) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	header := map[string]any{"typ": "secevent+jwt"}
	claims := map[string]any{
		"iss": u.URL, "aud": audience, "iat": now.Unix(), "jti": random(12),
		"sub_id": map[string]any{"format": "iss_sub", "iss": u.URL, "sub": subject},
		"events": map[string]any{event: map[string]any{"event_timestamp": now.Unix()}},
	}
	if edit != nil {
		edit(header, claims)
	}
	return u.sign(header, claims)
}

// SendLogout posts a logout token to a back-channel logout URI and returns the HTTP status.
func (u *Upstream) SendLogout(ctx context.Context, uri, token string) (int, error) {
	body := strings.NewReader(url.Values{"logout_token": {token}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, uri, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("fakeidp: sending a logout: %w", err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, nil
}
