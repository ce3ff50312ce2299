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

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Credentials are what a request presents to authenticate a client, as it was sent.
type Credentials struct {
	Header        Authorization
	ClientID      string // client_id
	Secret        string // client_secret
	Assertion     string // client_assertion
	AssertionType string // client_assertion_type
}

// Authorization is the Authorization header of a request.
type Authorization struct {
	Count      int    // how many there are
	Basic      bool   // the first is well-formed HTTP Basic
	ID, Secret string // what that says, both still form-encoded
}

// claim is who a request says it comes from, and its proof.
type claim struct {
	id        string
	secret    string // "" when none was presented
	raw       string // the secret as it was sent, if decoding changed it; "" otherwise
	basic     bool   // in the Authorization header
	assertion string // a signed statement of who asks, "" when none was presented
}

var (
	errClientAuth = oauth.NewError(oauth.InvalidClient, "Client authentication failed.")
	errNoClient   = oauth.NewError(oauth.InvalidClient, "Client authentication failed: no client was named.")
	errTwoClients = oauth.NewError(oauth.InvalidClient,
		"Client authentication failed: two different clients are named.")
	errTwoMethods = oauth.NewError(oauth.InvalidRequest, "More than one client authentication method was used.")
)

// claim takes the client's identity from the Authorization header or the body. Real clients mix the
// two: Basic with an empty password and Basic repeated by client_id in the body are accepted, an
// empty client_secret counts as absent. Two secrets are two methods (OAuth 2.1 §2.4, AS-86), and
// two identities are refused.
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
	// Some clients do not encode (RFC 6749 §2.3.1). Our own ids and secrets decode to themselves; a secret that
	// an operator chose may not, so it is compared both ways.
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

// NewClientAuth returns a ClientAuth that limits the failures of each client by a clock.
func NewClientAuth(
	finder *clients.Finder, assertions *Assertions, recorder *audit.Recorder, now func() time.Time,
) *ClientAuth {
	return &ClientAuth{finder, assertions, recorder, bounded.NewLimiter[string](limitedClients, now)}
}

// Failures to authenticate are limited for those that guess client secrets. Secrets carry
// 256 random bits, so this protects log and CPU more than the secret: failures beyond the
// limit are answered with 429 and not logged one by one, while the right secret passes.
var failureRate = bounded.Rate{Every: 3 * time.Second, Burst: 20}

const limitedClients = 10_000 // remembered

// slowDown is the answer to a client that is beyond a limit.
func slowDown(r bounded.Rate, why string) *oauth.Error {
	e := oauth.NewError(oauth.SlowDown, why)
	e.RetryAfter = r.Every
	return e
}

// Authenticate returns the client that a request comes from. A client with a
// secret must present it, by whichever of the two methods; one with a key must sign;
// one without either must not pretend to have one. Nothing of the request is consumed
// on failure, so that a client may try again with the same code.
func (a *ClientAuth) Authenticate(ctx context.Context, cred Credentials) (storage.Client, error) {
	who, err := cred.claim()
	if err != nil {
		return storage.Client{}, err
	}
	return a.verify(ctx, who)
}

// ForGrant is Authenticate for a token request. Whatever was granted to a client, the client
// is remembered with. One that is identified by a document has nothing to register again:
// what is wrong is the grant, and the clients of this kind recover from that only.
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

// ForPush is Authenticate for an authorization request (RFC 9126 §2). Of a client that is identified by a
// document, and of which nothing is known yet, it returns the id: unread. What it can do is judged when a
// person has signed in, as for a request that was not pushed.
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

// ForAssertion is Authenticate for a client that an issuer we trust has named. It may be unknown here, as no
// person has approved it: then its document is read, which no stranger can make us do (AS-154, AS-190).
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
	audit.Note(ctx, slog.String("client_id", form.Cut(who.id, 512)))
	// By what is stored now: it may have been replaced or deleted, or be confidential by now.
	c, err := a.Clients.Current(ctx, who.id)
	if err != nil {
		return c, err
	}
	return a.authenticated(ctx, c, who)
}

func (a *ClientAuth) authenticated(ctx context.Context, c storage.Client, who claim) (storage.Client, error) {
	audit.Note(ctx, audit.Client(c))
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

// knowsSecret compares the presented secret with the stored hash in constant time, both decoded and as it was
// sent. A client without a secret matches nothing.
func (who claim) knowsSecret(c storage.Client) bool {
	if c.SecretHash == nil || who.secret == "" {
		return false
	}
	decoded, raw := secrets.Hash(who.secret), secrets.Hash(cmp.Or(who.raw, who.secret))
	return subtle.ConstantTimeCompare(decoded[:], c.SecretHash[:])|
		subtle.ConstantTimeCompare(raw[:], c.SecretHash[:]) == 1
}
