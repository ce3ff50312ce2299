package authserver

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// credentials are what a request presents to authenticate a client.
type credentials struct {
	id        string
	secret    string // "" when none was presented
	basic     bool   // in the Authorization header
	assertion string // a signed statement of who asks, "" when none was presented
}

var errClientAuth = oauth.NewError(oauth.InvalidClient, "Client authentication failed.")

var errNoClient = oauth.NewError(oauth.InvalidClient, "Client authentication failed: no client was named.")

// readCredentials takes the client's identity from the Authorization header or the
// body. Real clients mix the two: Basic with an empty password and Basic repeated
// by client_id in the body are accepted, an empty client_secret is none at all. Two
// secrets are two methods (OAuth 2.1 §2.4, AS-86), two identities are nobody.
func readCredentials(r *http.Request, p form.Params) (credentials, error) {
	c := credentials{id: p.Get("client_id"), secret: p.Get("client_secret")}
	header := r.Header.Values("Authorization")
	if p.Get("client_assertion") != "" || p.Get("client_assertion_type") != "" {
		if c.secret != "" || len(header) > 0 {
			return c, oauth.NewError(oauth.InvalidRequest, "More than one client authentication method was used.")
		}
		return readAssertion(c, p)
	}
	if len(header) == 0 {
		if c.id == "" {
			return c, errNoClient
		}
		return c, nil
	}
	id, secret, ok := basicCredentials(r)
	switch {
	case len(header) > 1 || !ok:
		return c, oauth.NewError(oauth.InvalidClient, "Client authentication failed: the Authorization header is not valid.")
	case c.id != "" && c.id != id:
		return c, oauth.NewError(oauth.InvalidClient, "Client authentication failed: two different clients are named.")
	case c.secret != "" && secret != "":
		return c, oauth.NewError(oauth.InvalidRequest, "More than one client authentication method was used.")
	}
	c.id, c.basic = id, true
	if secret != "" {
		c.secret = secret
	}
	return c, nil
}

// basicCredentials reads HTTP Basic credentials, both halves form-decoded (RFC 6749
// §2.3.1). Some clients do not encode; ids and secrets of ours consist of characters
// that decode to themselves, so both kinds of client are understood.
func basicCredentials(r *http.Request) (id, secret string, ok bool) {
	id, secret, ok = r.BasicAuth()
	if !ok {
		return "", "", false
	}
	return formDecode(id), formDecode(secret), true
}

func formDecode(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	if d, err := url.QueryUnescape(s); err == nil {
		return d
	}
	return s
}

// authenticate returns the client that a request comes from. A client with a
// secret must present it, by whichever of the two methods; one with a key must sign;
// one without either must not pretend to have one. Nothing of the request is consumed
// on failure, so that a client may try again with the same code.
func (s *Server) authenticate(ctx context.Context, cred credentials) (storage.Client, error) {
	audit.Note(ctx, slog.String("client_id", form.Cut(cred.id, 512)))
	c, err := s.clients.Find(ctx, cred.id)
	if err != nil {
		return c, err
	}
	audit.Note(ctx, audit.Client(c))
	err = errClientAuth
	switch {
	case cred.assertion != "":
		err = s.checkAssertion(ctx, c, cred.assertion)
	case c.Public() && cred.secret == "", c.HasSecret() && secretMatches(c, cred.secret):
		err = nil
	case c.AuthMethod == privateKeyJWT:
		err = oauth.NewError(oauth.InvalidClient, "Client authentication failed: this client is registered for private_key_jwt.")
	}
	if err == nil || oauth.AsError(err).Code != oauth.InvalidClient {
		return c, err
	}
	if s.failures.exceeded(c.ID) {
		// The right secret always passes, so nobody can lock a client out.
		return storage.Client{}, s.failures.slowDown("Too many failed attempts for this client. Please wait.")
	}
	s.cfg.Audit.Record(ctx, audit.ClientAuthFailed, slog.String("client_id", c.ID), slog.Bool("basic", cred.basic),
		slog.String("reason", oauth.AsError(err).Description))
	return c, err
}
