// Package secevent is security event tokens (RFC 8417) as the Shared Signals Framework, CAEP and RISC
// of OpenID profile them: what one says, whether it is to be believed, and the endpoint to which
// issuers push theirs (RFC 8935).
package secevent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// Type is the typ of a security event token, and its media type after "application/" (RFC 8417 §2.3).
	Type = "secevent+jwt"
	// Window is how old a token may be. Transmitters go on trying while we cannot be reached.
	Window = 7 * 24 * time.Hour
	// Leeway is by how much clocks may differ.
	Leeway = time.Minute

	maxID        = 256
	maxEvents    = 8
	maxAudiences = 16
	maxText      = 1024 // bytes of a subject, or of a session's name
)

// Algorithms are those by which tokens may be signed.
var Algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
	jose.EdDSA,
}

// Token is what a security event token says.
type Token struct {
	ID       string   // jti
	Issuer   string   // iss
	Audience []string // aud
	IssuedAt time.Time
	// At is when it happened, as far as the token says: toe, or event_timestamp of its event, else IssuedAt.
	At     time.Time
	Events []string // the URIs of its events, in order
	// Targets are whom the events are about that end something.
	Targets []Target
	// Reason is the strongest of what they are; "" for a token that ends nothing.
	Reason Reason
}

// Issuer returns the iss of a token whose signature was not checked, to find the keys with. The
// token is one by its typ, and is signed by an algorithm that can be trusted.
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

// Parse reads the payload of a token.
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

// add takes in what one event ends.
func (t *Token) add(uri string, event, claims map[string]any) error {
	reason, ok := ends[uri]
	if !ok {
		return nil
	}
	subject, ok := claims["sub_id"].(map[string]any) // RFC 9493 §4.1
	if !ok {
		subject, ok = event["subject"].(map[string]any) // as before SSF 1.0
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

// Expected is what a token has to say to be believed.
type Expected struct {
	Issuer   string
	Audience []string // one of these
	// Issuers are those of subjects, Issuer among them.
	Issuers []string
	Now     time.Time
}

// Check reports why a token is not to be believed, as an *Error.
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

// ForgetAt is when the token is refused for its age, so that its ID need not be kept longer.
func (t Token) ForgetAt() time.Time { return t.IssuedAt.Add(Window) }

// object reads one JSON object, with numbers as they are written.
func object(body []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil || out == nil {
		return nil, refuse(InvalidRequest, "its payload is not a JSON object")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, refuse(InvalidRequest, "its payload is more than a JSON object")
	}
	return out, nil
}

func text(claims map[string]any, name string) string {
	s, _ := claims[name].(string)
	return s
}

// list is a text, or a list of them (RFC 7519 §4.1.3).
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
	if err != nil || !(f > 0 && f <= 1<<40) { // nor is it NaN
		return time.Time{}, false
	}
	return time.Unix(int64(f), 0), true
}

// String is what a log says of a token.
func (t Token) String() string { return fmt.Sprintf("%s %v", t.ID, t.Events) }
