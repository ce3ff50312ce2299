package grant

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Credentials are the unverified client credentials of a request.
type Credentials struct {
	Header        Authorization
	ClientID      string // client_id
	Secret        string // client_secret
	Assertion     string // client_assertion
	AssertionType string // client_assertion_type
}

// Authorization is the Authorization header of a request.
type Authorization struct {
	Count      int    // number of headers
	Basic      bool   // the first is valid HTTP Basic
	ID, Secret string // from the header, still form-encoded
}

// claim is the client that a request claims to come from, with its proof.
type claim struct {
	id        string
	secret    string // "" if absent
	raw       string // the secret before decoding, if decoding changed it; otherwise ""
	basic     bool   // from the Authorization header
	assertion string // a signed assertion, or ""
}

var (
	errClientAuth = oauth.NewError(oauth.InvalidClient, "Client authentication failed.")
	errNoClient   = oauth.NewError(oauth.InvalidClient, "Client authentication failed: no client was named.")
	errTwoClients = oauth.NewError(oauth.InvalidClient,
		"Client authentication failed: two different clients are named.")
	errTwoMethods = oauth.NewError(oauth.InvalidRequest, "More than one client authentication method was used.")
)

// claim takes the client's id from the Authorization header or the body. Real clients mix the two:
// Basic with an empty password, and Basic repeated by client_id in the body, are accepted. An empty
// client_secret counts as absent. Two secrets are two methods and refused (OAuth 2.1 §2.4, AS-86),
// and so are two ids.
func (c Credentials) claim() (claim, error) {
	if c.Assertion != "" || c.AssertionType != "" {
		if c.Secret != "" || c.Header.Count > 0 {
			return claim{}, errTwoMethods
		}
		return c.asserted()
	}
	if c.Header.Count == 0 {
		if c.ClientID == "" {
			return claim{}, errNoClient
		}
		return claim{id: c.ClientID, secret: c.Secret}, nil // client_secret_post: AS-88, AS-174
	}
	// Some clients do not encode (RFC 6749 §2.3.1). Generated ids and secrets decode to themselves.
	// A secret that an operator chose may not, so it is compared both ways.
	id, secret := formDecode(c.Header.ID), formDecode(c.Header.Secret)
	switch {
	case c.Header.Count > 1 || !c.Header.Basic:
		return claim{},
			oauth.NewError(oauth.InvalidClient, "Client authentication failed: the Authorization header is not valid.")
	case c.ClientID != "" && c.ClientID != id:
		return claim{}, errTwoClients
	case c.Secret != "" && secret != "":
		return claim{}, errTwoMethods
	}
	who := claim{id: id, secret: secret, basic: true} // AS-89, AS-174
	switch {
	case secret == "":
		who.secret = c.Secret
	case secret != c.Header.Secret:
		who.raw = c.Header.Secret
	}
	return who, nil
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

// ClientAuth authenticates clients.
type ClientAuth struct {
	Clients    *clients.Finder
	Assertions *Assertions
	Audit      *audit.Recorder
	failures   *bounded.Limiter[string]
}

// NewClientAuth returns a ClientAuth that limits the failures of each client. now is its clock.
func NewClientAuth(
	finder *clients.Finder, assertions *Assertions, recorder *audit.Recorder, now func() time.Time,
) *ClientAuth {
	return &ClientAuth{finder, assertions, recorder, bounded.NewLimiter[string](limitedClients, now)}
}

// failureRate limits failed authentication to stop guesses of client secrets. Secrets carry 256
// random bits, so this protects log and CPU more than the secret. Failures beyond the limit get
// status 429 and are not logged one by one. The right secret always passes.
var failureRate = bounded.Rate{Every: 3 * time.Second, Burst: 20}

const limitedClients = 10_000 // clients remembered

// slowDown returns the error for a client that has reached a limit.
func slowDown(r bounded.Rate, why string) *oauth.Error {
	e := oauth.NewError(oauth.SlowDown, why)
	e.RetryAfter = r.Every
	return e
}

// Authenticate returns the client of a request. A client with a secret must present it with either
// method; a client with a key must sign; a client without either must not present one. A failure
// uses up nothing, so that the client may try again with the same code.
func (a *ClientAuth) Authenticate(ctx context.Context, cred Credentials) (storage.Client, error) {
	who, err := cred.claim()
	if err != nil {
		return storage.Client{}, err
	}
	return a.verify(ctx, who)
}

// ForGrant is Authenticate for a token request. If a client with a metadata document is unknown, it
// returns invalid_grant for a code or a refresh token: the client is deleted together with its
// grants, cannot register again, and recovers only from that error.
func (a *ClientAuth) ForGrant(ctx context.Context, r TokenRequest) (storage.Client, error) {
	who, err := r.Credentials.claim()
	if err != nil {
		return storage.Client{}, err
	}
	c, err := a.verify(ctx, who)
	if !errors.Is(err, refusal.ErrUnknownClient) || !a.Clients.MayFetch(who.id) {
		return c, err
	}
	switch r.GrantType {
	case oauth.GrantCode:
		return c, errCode
	case oauth.GrantRefresh:
		return c, errRefresh
	}
	return c, err
}

// ForPush is Authenticate for a pushed authorization request (RFC 9126 §2). If the client has a
// metadata document and is not known yet, it returns only the id, and unread. The client is checked
// after a user has signed in, as for a request that was not pushed.
func (a *ClientAuth) ForPush(ctx context.Context, cred Credentials) (c storage.Client, unread bool, err error) {
	who, err := cred.claim()
	if err != nil {
		return c, false, err
	}
	c, err = a.verify(ctx, who)
	if errors.Is(err, refusal.ErrUnknownClient) && a.Clients.MayFetch(who.id) && who.secret == "" &&
		who.assertion == "" {
		return storage.Client{ID: who.id, Source: storage.SourceCIMD}, true, nil
	}
	return c, false, err
}

// ForAssertion is Authenticate for a client that a trusted issuer has named. The client may be
// unknown here, because no user has approved it. Then its metadata document is fetched; anonymous
// requests cannot cause that (AS-154, AS-190).
func (a *ClientAuth) ForAssertion(ctx context.Context, cred Credentials, named string) (storage.Client, error) {
	who, err := cred.claim()
	if err != nil {
		return storage.Client{}, err
	}
	c, err := a.verify(ctx, who)
	if who.id != named || !errors.Is(err, refusal.ErrUnknownClient) || !a.Clients.MayFetch(who.id) {
		return c, err
	}
	if c, err = a.Clients.Fetch(ctx, who.id); err != nil {
		return c, err
	}
	return a.authenticated(ctx, c, who)
}

func (a *ClientAuth) verify(ctx context.Context, who claim) (storage.Client, error) {
	request.Of(ctx).Note(slog.String("client_id", form.Cut(who.id, 512)))
	// The stored client may have been replaced or deleted, or have become confidential.
	c, err := a.Clients.Current(ctx, who.id)
	if err != nil {
		return c, err
	}
	return a.authenticated(ctx, c, who)
}

func (a *ClientAuth) authenticated(ctx context.Context, c storage.Client, who claim) (storage.Client, error) {
	request.Of(ctx).Note(audit.Client(c))
	var err error = errClientAuth
	switch {
	case who.assertion != "":
		err = a.Assertions.check(ctx, c, who.assertion)
	case c.Public() && who.secret == "", c.HasSecret() && who.knowsSecret(c): // AS-02, AS-87
		err = nil
	case c.AuthMethod == oauth.PrivateKeyJWT:
		err = oauth.NewError(oauth.InvalidClient,
			"Client authentication failed: this client is registered for private_key_jwt.")
	}
	if err == nil || oauth.AsError(err).Code != oauth.InvalidClient {
		return c, err
	}
	if a.failures.Take(bounded.Draw[string]{Key: c.ID, Rate: failureRate}) > 0 {
		// The right secret always passes, so an attacker cannot lock a client out.
		return storage.Client{}, slowDown(failureRate, "Too many failed attempts for this client. Please wait.")
	}
	a.Audit.Record(ctx, audit.ClientAuthFailed, slog.String("client_id", c.ID), slog.Bool("basic", who.basic),
		slog.String("reason", oauth.AsError(err).Description))
	return c, err
}

// knowsSecret compares the presented secret with the stored hash in constant time, both decoded and
// as sent. It returns false for a client without a secret.
func (who claim) knowsSecret(c storage.Client) bool {
	if c.SecretHash == nil || who.secret == "" {
		return false
	}
	decoded, raw := secrets.Hash(who.secret), secrets.Hash(cmp.Or(who.raw, who.secret))
	return subtle.ConstantTimeCompare(decoded[:], c.SecretHash[:])|
		subtle.ConstantTimeCompare(raw[:], c.SecretHash[:]) == 1
}
