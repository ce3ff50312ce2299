package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	redirect = "http://127.0.0.1:8123/callback"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
)

// person is a user with one browser that shows one page at a time.
type person struct {
	mu sync.Mutex // guards Person
	*demotest.Person
}

// visit opens an authorization URL. It repeats this while the pages are unavailable, and returns
// the number of pages shown.
func (p *person) visit(link string) (back *url.URL, pages int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	within(patience, func() bool {
		p.Pages = nil
		back, err = p.Visit(link)
		return err == nil
	})
	return back, len(p.Pages), err
}

// client is an MCP client with one grant.
type client struct {
	*cluster
	person *person
	rand   *rand.Rand

	id              string
	access, refresh string
	spent           string // the first refresh token
	spentAt         time.Time
}

var errRefused = errors.New("refused")

// refusal returns the error for a definite refusal by the server.
func refusal(a answer) error {
	return fmt.Errorf("%w: %d %s", errRefused, a.status, a.body)
}

// register registers the client (RFC 7591). Each client has a unique name: registrations with the
// same name and redirect URI are one application, and `grant revoke` ends an application.
func (c *client) register() error {
	name := "Chaos " + strconv.FormatUint(c.rand.Uint64(), 36)
	a, err := c.send(request{method: http.MethodPost, path: "/register", contentType: "application/json",
		body: `{"client_name":"` + name + `","redirect_uris":["` + redirect +
			`"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none"}`})
	if err != nil {
		return err
	}
	var out struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusCreated {
		return refusal(a)
	}
	c.id = out.ID
	c.registered.Add(1)
	return nil
}

// authorize makes the user sign in and approve.
func (c *client) authorize() (code string, pages int, err error) {
	q := url.Values{
		"response_type": {"code"}, "client_id": {c.id}, "redirect_uri": {redirect}, "state": {"s"},
		"resource":       {resource},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.S256}}
	for end := time.Now().Add(patience); ; {
		back, pages, err := c.person.visit(c.issuer + "/authorize?" + q.Encode())
		if err != nil {
			return "", pages, err
		}
		if code = back.Query().Get("code"); code != "" {
			return code, pages, nil
		}
		// A redirect cannot have status 503 and uses an error code instead.
		if back.Query().Get("error") != string(oauth.TemporarilyUnavailable) || time.Now().After(end) {
			return "", pages, fmt.Errorf("%w: %s", errRefused, back)
		}
	}
}

func (c *client) exchange(code string) (oauth.TokenResponse, answer, error) {
	return c.token(code,
		url.Values{"grant_type": {"authorization_code"}, "client_id": {c.id}, "code": {code},
			"code_verifier": {verifier}, "redirect_uri": {redirect}})
}

func (c *client) rotation(token string) request {
	return form("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {c.id}, "refresh_token": {token}})
}

// token sends a token request until a server answers, and records the result.
func (c *client) token(presented string, values url.Values) (out oauth.TokenResponse, a answer, err error) {
	if a, err = c.send(form("/token", values)); err != nil {
		return out, a, err
	}
	out, err = c.told(presented, a)
	return out, a, err
}

func (c *client) told(presented string, a answer) (out oauth.TokenResponse, err error) {
	if a.status != http.StatusOK {
		return out, refusal(a)
	}
	if err := json.Unmarshal(a.body, &out); err != nil {
		return out, err
	}
	claims, err := claimsOf(out.AccessToken)
	if err != nil {
		return out, err
	}
	c.won(presented, winner{out.RefreshToken, claims.TokenID})
	return out, nil
}

// claimsOf decodes an access token without verifying it.
func claimsOf(token string) (claims oauth.AccessTokenClaims, err error) {
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err == nil {
		err = json.Unmarshal(jws.UnsafePayloadWithoutVerification(), &claims)
	}
	return claims, err
}

// signIn gets the first tokens. If redeeming a code is interrupted, the code may be used up. Then
// the client begins again, and the user must not be asked anything.
func (c *client) signIn() error {
	for again := false; ; again = true {
		code, pages, err := c.authorize()
		if err != nil {
			return err
		}
		if again && pages > 0 {
			c.breach(signedIn, "a client that began again: the person was asked on %d pages", pages)
		}
		out, a, err := c.exchange(code)
		switch {
		case err == nil:
			c.access, c.refresh, c.spent = out.AccessToken, out.RefreshToken, ""
			c.signIns.Add(1)
			return nil
		case !errors.Is(err, errRefused) || !a.doubtful:
			return fmt.Errorf("exchange: %w", err)
		}
		c.repeated.Add(1)
	}
}

// renew refreshes with a token of a valid grant.
func (c *client) renew(token string) (oauth.TokenResponse, error) {
	began, first := time.Now(), c.firstPresented(token)
	out, a, err := c.token(token,
		url.Values{"grant_type": {"refresh_token"}, "client_id": {c.id}, "refresh_token": {token}})
	switch {
	case err == nil:
		c.refreshes.Add(1)
	case errors.Is(err, errRefused) && time.Since(first) > c.grace:
		c.overdue.Add(1) // this machine was slow, and the server was right (AS-95)
	case errors.Is(err, errRefused):
		c.breach(signedIn, "%v, after %s, doubtful %v, at %s", err, time.Since(began).Round(time.Millisecond),
			a.doubtful, a.from.address)
	default:
		c.breach(weather, "refresh: %v", err)
	}
	return out, err
}

func (c *client) keep(out oauth.TokenResponse) {
	if c.spent == "" {
		c.spent, c.spentAt = c.refresh, time.Now()
	}
	c.access, c.refresh = out.AccessToken, out.RefreshToken
}

// step is a typical action of a client.
func (c *client) step() error {
	switch n := c.rand.IntN(100); {
	case n < 40:
		out, err := c.renew(c.refresh)
		if err != nil {
			return err
		}
		c.keep(out)
	case n < 60:
		return c.together(2 + c.rand.IntN(5))
	case n < 75:
		return c.lose()
	case n < 85:
		return c.lag()
	case n < 93:
		return c.introspect(c.access)
	default:
		return c.verify(c.access)
	}
	return nil
}

// together refreshes n times concurrently, as the TypeScript SDKs do when n requests find an
// expired access token.
func (c *client) together(n int) error {
	outs, errs := make([]oauth.TokenResponse, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { outs[i], errs[i] = c.renew(c.refresh) })
	}
	wg.Wait()
	c.parallel.Add(int64(n))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.keep(outs[c.rand.IntN(n)])
	return nil
}

// lose refreshes, loses the response, and repeats the request with the old token.
func (c *client) lose() error {
	c.firstPresented(c.refresh)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.rand.IntN(20_000))*time.Microsecond)
	defer cancel()
	if a, _, err := c.attempt(ctx, c.rotation(c.refresh), c.replicas[c.rand.IntN(len(c.replicas))]); err == nil &&
		a.status == http.StatusOK {
		if _, err := c.told(c.refresh, a); err != nil {
			return err
		}
	}
	c.lost.Add(1)
	out, err := c.renew(c.refresh)
	if err == nil {
		c.keep(out)
	}
	return err
}

// lag acts as a process that learns of two refreshes late. It presents the old token when its
// successor has also been used.
func (c *client) lag() error {
	old := c.refresh
	for range 2 {
		out, err := c.renew(c.refresh)
		if err != nil {
			return err
		}
		c.keep(out)
	}
	c.late.Add(1)
	for range 2 {
		out, err := c.renew(old)
		if err != nil {
			return err
		}
		old = out.RefreshToken
	}
	if old != c.refresh {
		c.breach(oneWinner, "a laggard got to another token than its siblings")
	}
	return nil
}

func introspection(token string) request {
	r := form("/introspect", url.Values{"token": {token}})
	r.basic = resourceServer
	return r
}

// introspect checks that any replica reports the token of a valid grant as active.
func (c *client) introspect(token string) error {
	a, err := c.send(introspection(token))
	if err != nil {
		c.breach(weather, "introspection: %v", err)
		return err
	}
	c.introspected.Add(1)
	var out oauth.Introspection
	if err := json.Unmarshal(a.body, &out); err != nil || !out.Active {
		c.breach(kept, "introspection of a token whose grant stands: %d %.300s at %s", a.status, a.body, a.from.address)
	}
	return nil
}

// verify checks that the token verifies with the keys of any replica.
func (c *client) verify(token string) error {
	a, err := c.send(request{method: http.MethodGet, path: "/jwks.json"})
	if err != nil {
		c.breach(weather, "keys: %v", err)
		return err
	}
	c.checked.Add(1)
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return err
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(a.body, &set); err != nil {
		c.breach(verified, "keys of %s: %v: %.200s", a.from.address, err, a.body)
		return nil
	}
	if _, err := jws.Verify(set); err != nil {
		c.breach(verified, "key %s is not among the %d of %s: %v", jws.Signatures[0].Header.KeyID, len(set.Keys),
			a.from.address, err)
	}
	return nil
}
