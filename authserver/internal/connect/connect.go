// Package connect seals and opens the links that let a user grant a resource server more access to
// their account at a provider. A token exchange creates them, and the pages at /connect open them.
package connect

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Request asks a user to grant a resource server more access to their account at a provider. It is
// sealed in a URL that a tool or a client shows. The URL reveals nothing and gives no access, and
// only that user can use it, signed in here (RS-200, RS-201, RS-203).
type Request struct {
	UserID   string       `json:"u"`
	Provider string       `json:"p"`
	Resource string       `json:"r"` // canonical: the resource server that gets the access
	Scopes   oauth.Scopes `json:"s"` // with the provider's names
	Expires  int64        `json:"e"` // seconds since the epoch
}

const (
	ttl     = 15 * time.Minute
	purpose = "connect"
)

// Links seals requests into links and opens them.
type Links struct {
	Ring   *secrets.Ring
	Issuer string
	Now    func() time.Time
}

// For returns the request for the scopes that a provider's token lacks.
func (l *Links) For(t delegation.TokenRequest, missing oauth.Scopes) Request {
	if len(missing) == 0 {
		missing = t.Scopes
	}
	return Request{t.UserID, t.Provider, t.Resource, missing, l.Now().Add(ttl).Unix()}
}

// URL returns the link for a request.
func (l *Links) URL(r Request) string {
	content, _ := json.Marshal(r) // strings and a number
	sealed := l.Ring.Seal(purpose, content, nil)
	return l.Issuer + "/connect/" + base64.RawURLEncoding.EncodeToString(sealed)
}

// ErrLink is the error for an invalid or expired link.
var ErrLink = sentence.NewError(oauth.InvalidRequest,
	"This link is not valid, or more than a quarter of an hour old. Repeat the action in your application to get a new link.", "link_old")

// Open reads a request that URL has sealed. If it has only expired, Open returns the request
// together with the error.
func (l *Links) Open(sealed string) (Request, error) {
	var r Request
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return r, ErrLink.Because(err)
	}
	content, err := l.Ring.Open(purpose, raw, nil)
	if err != nil {
		return r, ErrLink.Because(err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return Request{}, ErrLink.Because(err)
	}
	if r.Expires <= l.Now().Unix() {
		return r, ErrLink
	}
	return r, nil
}
