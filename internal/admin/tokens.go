package admin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// maxToken limits a token, in bytes.
const maxToken = 16 << 10

// TokenText is an access token to inspect.
type TokenText struct {
	Token string `json:"token" secret:"yes" jsonschema:"the access token; it is not stored, and never shown"`
}

// TokenHeader holds the members of a JOSE header that are shown.
type TokenHeader struct {
	Algorithm string `json:"alg,omitempty"`
	KeyID     string `json:"kid,omitempty"`
	Type      string `json:"typ,omitempty"`
}

// TokenInspection is the result of inspecting a token. It does not contain the token. Its claims
// are only as reliable as the signature.
type TokenInspection struct {
	Active     bool            `json:"active"`
	Why        []string        `json:"why,omitempty" jsonschema:"why it is not accepted"`
	Header     TokenHeader     `json:"header"`
	Claims     json.RawMessage `json:"claims,omitempty"`
	UserName   string          `json:"user_name,omitempty" jsonschema:"name of the account"`
	ClientName string          `json:"client_name,omitempty"`
}

// TokenInspect inspects a token.
var TokenInspect = define(Spec{
	Name: "token inspect", Method: "POST", Path: "/token/inspect", Roles: readers, Reads: true,
	Summary: "Show an access token, and why it is refused",
	Details: "Decodes an access token, verifies it with the keys of this installation, and gives the reason if it\n" +
		"is not accepted: wrong issuer, unknown key, expired, revoked grant, disabled user, deleted client,\n" +
		"or revoked helper. It also shows the acting helpers and the key that the token is bound to. The\n" +
		"token itself is never shown.",
}, (*Service).inspectToken)

// inspecting is the state of one inspection.
type inspecting struct {
	*Service
	out    TokenInspection
	claims oauth.AccessTokenClaims
	now    time.Time
}

func (i *inspecting) why(format string, args ...any) {
	i.out.Why = append(i.out.Why, fmt.Sprintf(format, args...))
}

func (s *Service) inspectToken(ctx context.Context, in TokenText) (TokenInspection, error) {
	i := inspecting{Service: s, now: s.Now()}
	if err := i.decode(in.Token); err != nil {
		return TokenInspection{}, err
	}
	issuer, err := s.KnownIssuer(ctx)
	if err != nil {
		return TokenInspection{}, err
	}
	if i.claims.Issuer != issuer {
		i.why("it is of the issuer %q, and this server is %q", i.claims.Issuer, issuer)
	}
	if err := i.verify(ctx, in.Token); err != nil {
		return TokenInspection{}, err
	}
	if expires := time.Unix(i.claims.Expires, 0); !i.now.Before(expires) {
		i.why("it has expired, at %s", expires.UTC().Format(time.RFC3339))
	}
	if issued := time.Unix(i.claims.IssuedAt, 0); i.now.Add(time.Minute).Before(issued) {
		i.why("it is of the future (%s): are the clocks right?", issued.UTC().Format(time.RFC3339))
	}
	if err := i.standing(ctx); err != nil {
		return TokenInspection{}, err
	}
	names := s.Names()
	i.out.UserName, i.out.ClientName = names.User(ctx, i.claims.Subject), names.Client(ctx, i.claims.ClientID)
	i.out.Active = len(i.out.Why) == 0
	return i.out, nil
}

// KnownIssuer returns the configured issuer. Without one, it returns the issuer of the last start.
func (s *Service) KnownIssuer(ctx context.Context) (string, error) {
	if !s.Config.IsDefault("issuer") {
		return s.Config.Issuer, nil
	}
	last, err := s.Store.Remember(ctx, "issuer", nil)
	if err != nil || len(last) == 0 {
		return s.Config.Issuer, err
	}
	return string(last), nil
}

// decode parses a JWT without verifying it.
func (i *inspecting) decode(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return fault(ErrInvalid, "this is no access token of mcp-authd, which is a JWT: three parts with dots between "+
			"them (refresh tokens and codes are not looked into)")
	}
	for n, into := range []any{&i.out.Header, &i.out.Claims} {
		b, err := base64.RawURLEncoding.DecodeString(parts[n])
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			return fault(ErrInvalid, "part %d of the token is not JSON in base64url: is it complete?", n+1)
		}
	}
	if err := json.Unmarshal(i.out.Claims, &i.claims); err != nil {
		return fault(ErrInvalid, "the claims are not those of an access token of mcp-authd")
	}
	return nil
}

// verify notes why the signature is not valid.
func (i *inspecting) verify(ctx context.Context, token string) error {
	h := i.out.Header
	if h.Type != oauth.AccessTokenType {
		i.why("its type is %q, and an access token has %q", h.Type, oauth.AccessTokenType)
	}
	published, err := i.Store.Keys(ctx, i.now)
	if err != nil {
		return err
	}
	active, known := false, false
	for _, k := range published {
		active = active || k.State == storage.KeyActive && k.Algorithm == i.Config.Tokens.Algorithm
		known = known || k.ID == h.KeyID
	}
	switch {
	case !known:
		i.why("its key %q is not published here: another installation made it, or the key was revoked or has expired; "+
			"see: mcp-authd keys list", h.KeyID)
		return nil
	case !active: // a manager would create one
		return fault(ErrConflict, "no signing key is active: start the server first")
	}
	m, err := i.Keys(ctx)
	if err != nil {
		return err
	}
	switch _, err := m.Verify(ctx, token, h.Type); {
	case errors.Is(err, keys.ErrVerify):
		i.why("its signature is not that of the key %s: it was changed, or cut", h.KeyID)
	case err != nil:
		return err
	}
	return nil
}

// standing notes which client, user, grant or sub-agent of the token is no longer valid.
func (i *inspecting) standing(ctx context.Context) error {
	c := i.claims
	if _, err := i.Store.Client(ctx, c.ClientID); errors.Is(err, storage.ErrRevoked) {
		i.why("its client %s was deleted", c.ClientID)
	}
	if strings.HasPrefix(c.Subject, "usr_") {
		switch u, err := i.Store.User(ctx, c.Subject); {
		case errors.Is(err, storage.ErrNotFound):
			i.why("its user %s does not exist any more", c.Subject)
		case err != nil:
			return err
		case u.Disabled:
			i.why("its user %s is disabled", u.Name)
		}
	}
	state, err := i.Store.TokenActive(ctx, storage.TokenKey{
		TokenID:  c.TokenID,
		GrantID:  c.GrantID,
		NodeID:   c.NodeID,
		ClientID: c.ClientID,
		Now:      i.now,
	})
	switch {
	case err != nil:
		return err
	case !state.Active && c.NodeID != "":
		i.why("the helper %s or one above it was cut, or its grant %s was revoked or paused, is unknown here, or has ended",
			c.NodeID, c.GrantID)
	case !state.Active && c.GrantID != "":
		i.why("its grant %s was revoked or paused, is unknown here, or has ended; or the token itself was revoked",
			c.GrantID)
	case !state.Active:
		i.why("it was revoked, or its client was deleted")
	}
	return nil
}
