package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// maxClaims limits the stored claims of a user, as JSON.
const maxClaims = 64 << 10

// object parses a JSON object. Numbers keep their text form, because a float64 cannot distinguish
// large identifiers.
func object(body []byte) (map[string]any, error) {
	v, err := strictjson.Value(body, strictjson.Limits{Names: strictjson.Exact})
	out, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: not a JSON object of one meaning", ErrGarbage)
	}
	return out, nil
}

// plain converts numbers to float64, the type they have after being stored.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, m := range v {
			out[k] = plain(m)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, m := range v {
			out[i] = plain(m)
		}
		return out
	}
	return v
}

// member follows a path of member names joined by dots. It also finds a member whose name contains
// dots.
func member(from map[string]any, path string) (any, bool) {
	if v, ok := from[path]; ok {
		return v, true
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if inner, ok := from[path[:i]].(map[string]any); ok {
			if v, ok := member(inner, path[i+1:]); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// mapped renames members to claims. A claim that is mapped to "" is removed, for values that users
// of the provider can set themselves.
func mapped(raw map[string]any, names map[string]string) map[string]any {
	out := maps.Clone(raw)
	for claim, path := range names {
		delete(out, claim)
		if v, ok := member(raw, path); ok && path != "" && v != nil {
			out[claim] = v
		}
	}
	return out
}

// validSubject checks that sub has 1 to 255 printable ASCII characters (OpenID Connect Core §2).
func validSubject(s string) error {
	if s == "" || len(s) > 255 || strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return fmt.Errorf("%w: sub is missing or malformed", ErrGarbage)
	}
	return nil
}

// Name returns the name of the account, or "" if the provider gave only an identifier.
func (p Profile) Name() string {
	return firstOf(p.Claims, "preferred_username", "email", "name")
}

// label returns the display name of the account.
func label(claims map[string]any) string {
	return firstOf(claims, "preferred_username", "email", "name", "sub")
}

// firstOf returns the first of the named claims that has text, cut to 100 characters.
func firstOf(claims map[string]any, names ...string) string {
	for _, name := range names {
		s := strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, strings.TrimSpace(claim.Text(claims, name)))
		if s == "" {
			continue
		}
		if r := []rune(s); len(r) > 100 {
			s = string(r[:100])
		}
		return s
	}
	return ""
}

// ofTheToken lists claims of an ID token that describe the token and not the user.
var ofTheToken = []string{"aud", "azp", "exp", "iat", "nbf", "jti", "nonce", "at_hash", "c_hash", "s_hash"}

// part builds a profile from the claims of one source.
func (u *plainOAuth) part(source string, raw map[string]any) (Profile, error) {
	if u.preset.complete != nil {
		u.preset.complete(raw)
	}
	subject := claim.Text(raw, "sub")
	if err := validSubject(subject); err != nil {
		return Profile{}, err
	}
	if u.preset.subject != nil {
		if subject = u.preset.subject(raw, subject); subject == "" {
			return Profile{}, fmt.Errorf("%w: it does not name the organisation of the account", ErrGarbage)
		}
	}
	claims := plain(raw).(map[string]any)
	claims["sub"] = claim.Text(raw, "sub")
	for _, name := range ofTheToken {
		delete(claims, name)
	}
	if encoded, err := json.Marshal(claims); err != nil || len(encoded) > maxClaims {
		return Profile{}, fmt.Errorf("%w: more than %d bytes of claims", ErrGarbage, maxClaims)
	}
	p := Profile{
		Subject: subject, Label: label(raw), SessionID: claim.Text(raw, "sid"), Claims: claims,
		Parts: map[string]map[string]any{source: claims},
	}
	// OpenID Connect Core §2 defines auth_time for the ID token; in user info it proves nothing.
	if at, ok := claims["auth_time"].(float64); ok && source == "id_token" && at > 0 && at < 1<<40 {
		p.AuthTime = time.Unix(int64(at), 0)
	}
	return p, nil
}

// get requests a document with an access token.
func (u *plainOAuth) get(ctx context.Context, at, access string) (body []byte, mediaType string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	req.Header.Set("Authorization", "Bearer "+access)
	req.Header.Set("Accept", u.preset.accept)
	resp, err := u.client.Do(req)
	if err != nil {
		return nil, "", failed(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		return nil, "", failed(err)
	}
	where := req.URL.Host + req.URL.Path
	switch resp.StatusCode {
	case http.StatusOK:
		return body, resp.Header.Get("Content-Type"), nil
	case http.StatusUnauthorized:
		return nil, "", fmt.Errorf("%w: %s answers 401", ErrDenied, where)
	case http.StatusForbidden:
		return nil, "", u.forbidden(where, body)
	}
	return nil, "", fmt.Errorf("%w: %s answers %d", ErrGarbage, where, resp.StatusCode)
}

// forbidden returns the error for a 403. GitHub sends it for a suspended account, others for a
// missing scope.
func (u *plainOAuth) forbidden(where string, body []byte) error {
	if u.preset.github && bytes.Contains(body, []byte("suspended")) {
		return fmt.Errorf("%w: %s: the account is suspended", ErrDenied, where)
	}
	return fmt.Errorf("%w: %s answers 403", ErrMisconfigured, where)
}
