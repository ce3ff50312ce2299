// Package secevent implements security event tokens (RFC 8417) in the profile of OpenID's Shared
// Signals Framework, CAEP and RISC. It parses and checks tokens, and provides the endpoint that
// issuers push them to (RFC 8935).
package secevent

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

const (
	// Type is the typ of a security event token, and its media type after "application/" (RFC 8417
	// §2.3).
	Type = "secevent+jwt"
	// Window is the maximum age of a token. Transmitters retry for a while if this server is
	// unreachable.
	Window = 7 * 24 * time.Hour
	// Leeway is the allowed difference between clocks.
	Leeway = time.Minute

	maxID        = 256
	maxEvents    = 8
	maxAudiences = 16
	maxText      = 1024 // bytes of a subject or a session ID
)

// Algorithms lists the accepted signature algorithms.
var Algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
	jose.EdDSA,
}

// Token is the content of a security event token.
type Token struct {
	ID       string   // jti
	Issuer   string   // iss
	Audience []string // aud
	IssuedAt time.Time
	// At is the time of the event: event_timestamp of the event, toe, or else IssuedAt.
	At     time.Time
	Events []string // URIs of its events, sorted
	// Targets lists the subjects of the events that end something.
	Targets []Target
	// Reason is the strongest reason among the events, or "" if the token ends nothing.
	Reason Reason
}

// Issuer returns the iss of a token without checking the signature, to find the keys. It does check
// that typ is secevent+jwt and that the signature algorithm is accepted.
func Issuer(raw string) (string, error) {
	signed, err := jose.ParseSignedCompact(raw, Algorithms)
	if err != nil {
		return "", refuse(InvalidRequest, "it is not a JWT that is signed by a public key")
	}
	typ, _ := signed.Signatures[0].Header.ExtraHeaders[jose.HeaderType].(string)
	if strings.TrimPrefix(strings.ToLower(typ), "application/") != Type { // RFC 8417 §2.3, SSF 1.0 §4.1.1
		return "", refuse(InvalidRequest, "its typ is not secevent+jwt")
	}
	_, payload, _ := strings.Cut(raw, ".")
	payload, _, _ = strings.Cut(payload, ".")
	body, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", refuse(InvalidRequest, "its payload is not base64url")
	}
	claims, err := object(body)
	if err != nil {
		return "", err
	}
	iss := text(claims, "iss")
	if iss == "" {
		return "", refuse(InvalidIssuer, "it names no issuer")
	}
	return iss, nil
}

// Parse parses the payload of a token.
func Parse(payload []byte) (Token, error) {
	claims, err := object(payload)
	if err != nil {
		return Token{}, err
	}
	t := Token{ID: text(claims, "jti"), Issuer: text(claims, "iss"), Audience: list(claims["aud"])}
	issued, dated := instant(claims["iat"])
	events, _ := claims["events"].(map[string]any)
	t.IssuedAt, t.Events = issued, slices.Sorted(maps.Keys(events))
	switch {
	case t.ID == "" || len(t.ID) > maxID:
		return Token{}, refuse(InvalidRequest, "it has no jti, or a long one")
	case !dated:
		return Token{}, refuse(InvalidRequest, "it has no iat")
	case len(t.Events) == 0 || len(t.Events) > maxEvents:
		return Token{}, refuse(InvalidRequest, "it has no event, or too many")
	case len(t.Audience) > maxAudiences:
		return Token{}, refuse(InvalidAudience, "it has too many audiences")
	}
	for _, uri := range t.Events {
		event, ok := events[uri].(map[string]any)
		if !ok {
			return Token{}, refuse(InvalidRequest, "an event is not a JSON object")
		}
		if err := t.add(uri, event, claims); err != nil {
			return Token{}, err
		}
	}
	if toe, ok := instant(claims["toe"]); ok && t.At.IsZero() { // RFC 8417 §2.2
		t.At = toe
	}
	if t.At.IsZero() || t.At.After(t.IssuedAt) {
		t.At = t.IssuedAt
	}
	return t, nil
}

// add adds the targets and the reason of one event.
func (t *Token) add(uri string, event, claims map[string]any) error {
	reason, ok := ends[uri]
	if !ok {
		return nil
	}
	subject, ok := claims["sub_id"].(map[string]any) // RFC 9493 §4.1
	if !ok {
		subject, ok = event["subject"].(map[string]any) // before SSF 1.0
	}
	targets := targetsOf(subject, 0)
	if reason == ReasonSession {
		targets = orSessions(targets)
	} else {
		targets = wholeAccounts(targets)
	}
	if !ok || len(targets) == 0 {
		return refuse(InvalidRequest, "its subject is in no format by which a person is known here")
	}
	t.Targets = append(t.Targets, targets...)
	if t.Reason == "" || slices.Index(reasons, reason) < slices.Index(reasons, t.Reason) {
		t.Reason = reason
	}
	if at, ok := instant(event["event_timestamp"]); ok && at.After(t.At) { // CAEP 1.0 §2
		t.At = at
	}
	return nil
}

// Expected contains the requirements for a token.
type Expected struct {
	Issuer   string
	Audience []string // a token must name one of these
	// Issuers lists the accepted issuers of subjects, including Issuer.
	Issuers []string
	Now     time.Time
}

// Check returns an *Error if the token must not be accepted.
func (t Token) Check(x Expected) error {
	switch {
	case t.Issuer != x.Issuer:
		return refuse(InvalidIssuer, "it is by another issuer")
	case !slices.ContainsFunc(t.Audience, func(a string) bool { return slices.Contains(x.Audience, a) }):
		return refuse(InvalidAudience, "it is for another receiver")
	case t.IssuedAt.After(x.Now.Add(Leeway)):
		return refuse(InvalidRequest, "it is from the future")
	case !x.Now.Before(t.ForgetAt()):
		return refuse(InvalidRequest, "it is older than seven days")
	}
	for _, target := range t.Targets {
		if target.Issuer != "" && !slices.Contains(x.Issuers, target.Issuer) {
			return refuse(InvalidRequest, "its subject is of another issuer")
		}
	}
	return nil
}

// ForgetAt returns when the token is too old to be accepted, so its ID need not be stored longer.
func (t Token) ForgetAt() time.Time { return t.IssuedAt.Add(Window) }

// object parses one JSON object and keeps numbers as text.
func object(body []byte) (map[string]any, error) {
	v, err := strictjson.Value(body, strictjson.Limits{})
	out, ok := v.(map[string]any)
	switch duplicate := (*strictjson.DuplicateError)(nil); {
	case errors.As(err, &duplicate):
		return nil, refuse(InvalidRequest, "its payload has a member twice")
	case err != nil || !ok:
		return nil, refuse(InvalidRequest, "its payload is not a JSON object")
	}
	return out, nil
}

func text(claims map[string]any, name string) string {
	s, _ := claims[name].(string)
	return s
}

// list returns a string, or a list of strings, as a list (RFC 7519 §4.1.3).
func list(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			if s, ok := one.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

func instant(v any) (time.Time, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	f, err := n.Float64()
	if err != nil || !(f > 0 && f <= 1<<40) { // excludes NaN
		return time.Time{}, false
	}
	return time.Unix(int64(f), 0), true
}

// String returns a description for logs.
func (t Token) String() string { return fmt.Sprintf("%s %v", t.ID, t.Events) }
