package mcpclient

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// good reports whether a token meets the requirements.
func (p *Person) good(a access, w want) bool {
	return a.Access != "" && a.Access != w.not && p.now().Add(early).Before(a.ExpiresAt)
}

// access returns a sign-in that meets the requirements. A lock in the store lets one process at a
// time get a token, and the others reuse it.
func (p *Person) access(ctx context.Context, w want) (access, error) {
	if a := p.current(); p.good(a, w) {
		return a, nil
	}
	select {
	case p.busy <- struct{}{}:
		defer func() { <-p.busy }()
	case <-ctx.Done():
		return access{}, ctx.Err()
	}
	if a := p.current(); p.good(a, w) { // another goroutine got it
		return a, nil
	}
	a, err := p.load(ctx)
	if err != nil || p.good(a, w) { // another process got it
		p.set(a)
		return a, err
	}
	unlock, err := p.c.Store.Lock(ctx, p.key)
	if err != nil {
		return access{}, err
	}
	defer unlock()
	if a, err = p.load(ctx); err == nil && !p.good(a, w) {
		a, err = p.renew(ctx, a, w)
	}
	if err != nil {
		return access{}, err
	}
	p.set(a)
	return a, nil
}

// renew gets a new token with the refresh token, or makes the user sign in.
func (p *Person) renew(ctx context.Context, a access, w want) (access, error) {
	if a.Refresh != "" && !w.person {
		answer, err := p.refresh(ctx, a)
		if err == nil {
			return p.keep(ctx, a, answer)
		}
		if !errors.Is(err, signin.ErrRefused) {
			return a, of(stepToken, err)
		}
	}
	if p.c.Unattended {
		return a, ErrSignIn
	}
	next, err := p.signIn(ctx, a, w)
	if err != nil {
		return a, of(signin.StepBrowser, err)
	}
	return next, nil
}

func (p *Person) refresh(ctx context.Context, a access) (t oauth.TokenResponse, err error) {
	server, err := a.client.Find(ctx, a.Issuer)
	if err != nil {
		return t, err
	}
	if err := p.secure(server.TokenEndpoint); err != nil {
		return t, err
	}
	return a.client.Refresh(ctx, server, a.credentials(), a.Refresh, a.resource(p))
}

func (a access) resource(p *Person) string {
	if a.Resource == "" {
		return p.c.Server
	}
	return a.Resource
}

// keep stores the tokens of a response.
func (p *Person) keep(ctx context.Context, a access, t oauth.TokenResponse) (access, error) {
	if !isCredential(t.AccessToken) {
		return a, fail(stepToken, "The authorization server's answer is broken.", "the answer holds no access token")
	}
	a.Granted(t, p.now())
	data, err := json.Marshal(a.Kept)
	if err != nil {
		return a, err
	}
	return a, p.c.Store.Save(ctx, p.key, data)
}

// place is the authorization server of the MCP server, and the request to make there.
type place struct {
	server   signin.Server
	resource string
	scopes   oauth.Scopes
	bound    bool // the MCP server requires DPoP
}

// discover finds the authorization server (MCP "Authorization Server Discovery").
func (p *Person) discover(ctx context.Context, c *signin.Client) (at place, err error) {
	ch, r, err := p.document(ctx, c)
	if err != nil {
		return at, err
	}
	issuers, err := discovery.Issuers(p.c.Server, r)
	if err != nil {
		return at, err
	}
	pinned := p.c.AuthorizationServer
	switch {
	case pinned == "":
		at.server, err = c.Metadata(ctx, p.c.Server, r)
	case slices.Contains(issuers, pinned):
		at.server, err = c.Find(ctx, pinned)
	default:
		err = fail(discovery.StepResource, "Is the MCP server the right one? The user was not sent to its servers.",
			"the MCP server names %s as its authorization server, and not %s", printable(issuers[0]), pinned)
	}
	if err != nil {
		return at, err
	}
	s := at.server
	at.resource, at.bound = r.ProtectedResource.Resource, r.DPoPRequired
	if at.resource == "" {
		at.resource = p.c.Server
	}
	at.scopes = firstScopes(p.c.Scopes, ch.Scope, oauth.Scopes(r.ScopesSupported))
	if slices.Contains(s.ScopesSupported, oauth.OfflineAccess) {
		at.scopes = at.scopes.Union(oauth.Scopes{oauth.OfflineAccess}) // MCP "Refresh Tokens"
	}
	return at, p.secure(s.Issuer, s.AuthorizationEndpoint, s.TokenEndpoint, s.RegistrationEndpoint,
		s.RevocationEndpoint, s.DeviceAuthorizationEndpoint)
}

// document reads the metadata of the MCP server. A configuration with issuer and scopes needs no
// challenge, unless only that tells the location.
func (p *Person) document(ctx context.Context, c *signin.Client) (
	ch discovery.Challenge, r discovery.Resource, err error,
) {
	if p.c.AuthorizationServer != "" && len(p.c.Scopes) > 0 {
		if r, err = c.Resource(ctx, p.c.Server, ch); err != nil || r.Location != "" {
			return ch, r, err
		}
	}
	if ch, err = c.Challenge(ctx, p.c.Server); err == nil {
		r, err = c.Resource(ctx, p.c.Server, ch)
	}
	return ch, r, err
}

// signIn makes the user sign in. It keeps the registration, unless the server no longer knows it.
func (p *Person) signIn(ctx context.Context, old access, w want) (access, error) {
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	at, err := p.discover(ctx, p.client(nil))
	if err != nil {
		return old, err
	}
	if w.moved && at.server.Issuer == old.Issuer {
		return old, fail(stepCall, signin.ClockAdvice(w.header, p.now()),
			"the MCP server refuses a new token of its own authorization server, %s", old.Issuer)
	}
	a, err := p.prepare(old, at)
	if err != nil {
		return old, err
	}
	if a.ClientID != "" { // the user keeps what was granted before
		at.scopes = at.scopes.Union(old.Scopes)
	}
	at.scopes = at.scopes.Union(w.scopes)
	a, answer, err := p.ask(ctx, a, at, w.proof)
	if unknown := (*clientUnknown)(nil); errors.As(err, &unknown) && a.ClientID != "" && a.ClientID != p.c.ClientID {
		a.ClientID, a.Secret, a.Redirect = "", "", "" // the server no longer knows the client
		a, answer, err = p.ask(ctx, a, at, w.proof)
	}
	if err != nil {
		return old, err
	}
	// A server replaces the grant of the same client. Another grant ends here; on an error, its
	// tokens expire.
	if old.Refresh != "" && (old.Issuer != a.Issuer || old.ClientID != a.ClientID) {
		_ = p.revoke(ctx, old)
	}
	a.Scopes, _ = at.scopes.WithoutClearances() // unless the response says otherwise
	a.Refresh = ""
	return p.keep(ctx, a, answer)
}

// prepare returns the sign-in to complete: with the registration of the old one, if it is from the
// same server, and with the key that tokens are bound to.
func (p *Person) prepare(old access, at place) (a access, err error) {
	a.Issuer, a.Resource = at.server.Issuer, at.resource
	document := strings.HasPrefix(p.c.ClientID, "https://")
	switch {
	case p.c.ClientID != "" && (!document || at.server.ClientIDMetadataDocument):
		a.ClientID = p.c.ClientID
	case old.Issuer == at.server.Issuer:
		a.ClientID, a.Secret, a.Redirect, a.Device = old.ClientID, old.Secret, old.Redirect, old.Device
	}
	custom := p.c.DPoP != nil && p.c.DPoP.Key != nil
	switch {
	case p.c.DPoP == nil && !at.bound && len(old.Key) == 0, custom:
	case len(old.Key) > 0 && old.Issuer == at.server.Issuer:
		a.Key = old.Key
	default:
		if a.Key, err = newKey(); err != nil {
			return a, err
		}
	}
	signer, err := p.signer(a.Key)
	a.client = p.client(signer)
	return a, err
}

// newKey returns a new private key for DPoP in PKCS #8.
func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(key)
}

func signerOf(key []byte) (*dpop.Signer, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, fail(stepStore, "Sign out, and sign in again.", "the kept DPoP key is not valid")
	}
	private, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fail(stepStore, "Sign out, and sign in again.", "the kept DPoP key cannot sign")
	}
	return dpop.NewSigner(private)
}

// clientUnknown is an error that occurred before the user was asked for anything.
type clientUnknown struct{ error }

func (e *clientUnknown) Unwrap() error { return e.error }

// ask asks the user, in a browser or on another device.
func (p *Person) ask(ctx context.Context, a access, at place, proof signin.Proof) (
	access, oauth.TokenResponse, error,
) {
	if p.byDevice(at.server) {
		return p.askDevice(ctx, a, at, proof)
	}
	return p.askBrowser(ctx, a, at, proof)
}

// byDevice reports whether the user must use another device.
func (p *Person) byDevice(s signin.Server) bool {
	return p.c.Device || p.c.Paste == nil && s.DeviceAuthorizationEndpoint != "" && !p.hasBrowser()
}

// hasBrowser reports whether a browser may open. A program with its own OpenBrowser has one.
func (p *Person) hasBrowser() bool { return !p.desktop || signin.Desktop() == nil }

func (p *Person) askBrowser(ctx context.Context, a access, at place, proof signin.Proof) (
	access, oauth.TokenResponse, error,
) {
	var token oauth.TokenResponse
	back, err := p.listen(a)
	if err != nil {
		return a, token, err
	}
	defer back.Close()
	if a.ClientID == "" || a.Device && a.ClientID != p.c.ClientID {
		cred, err := a.client.Register(ctx, at.server, back.URI)
		if err != nil {
			return a, token, err
		}
		a.ClientID, a.Secret, a.Redirect = cred.ID, cred.Secret, back.URI
	}
	a.Device = false
	request, err := a.client.Authorize(at.server, a.credentials(), back.URI, at.resource, at.scopes, proof)
	if err != nil {
		return a, token, err
	}
	if err := a.client.Try(ctx, request); err != nil {
		return a, token, &clientUnknown{err}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends Paste
	opened := p.c.OpenBrowser(ctx, request.URL) == nil
	p.c.Ask(ctx, Prompt{URL: request.URL, Opened: opened})
	if p.c.Paste != nil && !opened {
		go p.paste(ctx, back)
	}
	token, err = a.client.Redeem(ctx, at.server, a.credentials(), request, back, at.resource)
	return a, token, err
}

// paste gives the callback the URLs that the user pastes, until one is a callback.
func (p *Person) paste(ctx context.Context, back *signin.Callback) {
	for {
		pasted, err := p.c.Paste(ctx)
		if err != nil || ctx.Err() != nil || back.Take(pasted) == nil {
			return
		}
	}
}

// listen opens the callback: at the registered port if it is free, because some servers compare it.
func (p *Person) listen(a access) (*signin.Callback, error) {
	if p.c.Redirect != "" {
		return signin.ListenAt(p.c.Redirect)
	}
	if a.Redirect != "" {
		if back, err := signin.ListenAt(a.Redirect); err == nil {
			return back, nil
		}
	}
	return signin.Listen()
}

func (p *Person) askDevice(ctx context.Context, a access, at place, proof signin.Proof) (
	access, oauth.TokenResponse, error,
) {
	var token oauth.TokenResponse
	if a.ClientID == "" || !a.Device && a.ClientID != p.c.ClientID {
		cred, err := a.client.RegisterDevice(ctx, at.server)
		if err != nil {
			return a, token, err
		}
		a.ClientID, a.Secret, a.Redirect = cred.ID, cred.Secret, ""
	}
	a.Device = true
	scopes, _ := at.scopes.WithoutClearances() // the page of a device shows no call
	request, err := a.client.BeginDevice(ctx, at.server, a.credentials(), at.resource, scopes, proof)
	if err != nil {
		return a, token, &clientUnknown{err}
	}
	p.c.Ask(ctx, Prompt{Device: DevicePrompt{
		URL:      request.URI,
		Code:     request.UserCode,
		Complete: request.Complete,
		Expires:  p.now().Add(time.Duration(request.ExpiresIn) * time.Second),
	}})
	token, err = a.client.AwaitDevice(ctx, at.server, a.credentials(), request, at.resource)
	return a, token, err
}
