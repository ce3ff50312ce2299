package signin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Session is a user's sign-in at an authorization server for one resource, which lasts over several
// runs of a program. It adds the user's token to requests and refreshes it. It makes the user sign
// in if the token is missing or refused, or if a stronger or more recent authentication is required
// (RFC 9470).
type Session struct {
	Name             string // client name for registration, shown to users
	Issuer, Resource string
	Scopes           oauth.Scopes
	File             File
	ClientID         string // "": the client registers itself
	Device           bool   // this computer has no browser
	// Ready returns an error if sign-in is impossible. It is called before any request to the
	// server. Ask shows the user what to do.
	Ready func() error
	Ask   func(context.Context, Prompt)
	// Next sends requests with a token. Now is the clock.
	Next http.RoundTripper
	Now  func() time.Time

	mu     sync.Mutex // guards the fields below, and allows one request at a time
	client *Client
	server Server
}

// Prompt is an action for the user.
type Prompt struct {
	URL    string        // to open in a browser; "" for a device
	Device DeviceRequest // to approve on another device
}

// signInTime is the time limit for the user.
const signInTime = 5 * time.Minute

// early is the time before expiry when a token is no longer used.
const early = 10 * time.Second

// RoundTrip implements http.RoundTripper.
func (s *Session) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, err := s.token(r.Context(), want{})
	if err != nil {
		return nil, err
	}
	answer, err := s.send(r, token)
	if err != nil || answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
		return answer, err
	}
	w := wanted(answer)
	if w == (want{}) || r.Body != nil && r.GetBody == nil {
		return answer, nil
	}
	w.not = token
	answer.Body.Close()
	if token, err = s.token(r.Context(), w); err != nil {
		return nil, err
	}
	return s.send(r, token)
}

func (s *Session) send(r *http.Request, token string) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.GetBody != nil {
		var err error
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return s.Next.RoundTrip(r)
}

// want holds the requirements for a token.
type want struct {
	not    string // a refused token
	person bool   // the user must sign in, because a refreshed token would also be refused
	proof  Proof  // required of the user
}

// wanted returns the requirements for a token that avoids a refusal. The zero value means that no
// token helps.
func wanted(answer *http.Response) (w want) {
	challenges, err := oauth.ParseChallenges(answer.Header.Values("WWW-Authenticate"))
	if err != nil {
		return w
	}
	for _, ch := range challenges {
		if !strings.EqualFold(ch.Scheme, "Bearer") {
			continue
		}
		switch oauth.Code(ch.Params["error"]) {
		case oauth.InvalidToken:
			return want{not: "any"}
		case oauth.InsufficientScope:
			return want{person: true}
		case oauth.InsufficientAuthentication:
			p := proofOf(ch.Params)
			return want{person: p.Demands(), proof: p}
		}
	}
	return w
}

// token returns a token that meets the requirements. A lock on the file lets one program at a time
// get a token, and the others reuse it.
func (s *Session) token(ctx context.Context, w want) (string, error) {
	release, err := s.File.lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	kept, err := s.File.read()
	if err != nil {
		return "", err
	}
	if kept.Access != "" && kept.Access != w.not && s.Now().Add(early).Before(kept.ExpiresAt) {
		return kept.Access, nil
	}
	if err := s.find(ctx); err != nil {
		return "", err
	}
	if kept.Refresh != "" && !w.person {
		answer, err := s.client.Refresh(ctx, s.server, Credentials{ID: kept.ClientID}, kept.Refresh, s.Resource)
		if err == nil {
			return s.keep(kept, answer)
		}
		if !errors.Is(err, errRefused) {
			return "", err
		}
	}
	return s.signIn(ctx, kept, w.proof)
}

// find reads the metadata of the authorization server.
func (s *Session) find(ctx context.Context) (err error) {
	if s.client != nil {
		return nil
	}
	client := New()
	client.Name = s.Name
	if s.server, err = client.find(ctx, s.Issuer); err == nil {
		s.client = client
	}
	return err
}

// find reads the metadata of an issuer.
func (c *Client) find(ctx context.Context, issuer string) (s Server, err error) {
	var found bool
	if s.AuthorizationServer, found, err = c.Server(ctx, issuer); err == nil && !found {
		err = fail(discovery.StepMetadata, "Is the issuer right?", "there is no metadata of the issuer %s", issuer)
	}
	if err != nil {
		return s, err
	}
	return s, s.check()
}

func (s *Session) signIn(ctx context.Context, kept Kept, proof Proof) (string, error) {
	if err := s.Ready(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	by := s.byBrowser
	if s.Device {
		by = s.byDevice
	}
	known := kept.ClientID
	if kept.Device != s.Device {
		known = ""
	}
	if s.ClientID != "" {
		known = s.ClientID
	}
	answer, id, err := by(ctx, known, proof)
	if unknown := (*clientUnknown)(nil); known != "" && s.ClientID == "" && errors.As(err, &unknown) {
		answer, id, err = by(ctx, "", proof) // the server no longer knows the client
	}
	if err != nil {
		return "", err
	}
	if kept.Refresh != "" { // ends the previous sign-in; on an error, its token expires
		_ = s.client.Revoke(ctx, s.server, Credentials{ID: kept.ClientID}, kept.Refresh)
	}
	return s.keep(Kept{Issuer: s.Issuer, ClientID: id, Device: s.Device}, answer)
}

// clientUnknown is an error that occurred before the user was asked for anything.
type clientUnknown struct{ error }

func (e *clientUnknown) Unwrap() error { return e.error }

func (s *Session) byBrowser(
	ctx context.Context, id string, proof Proof,
) (token oauth.TokenResponse, _ string, err error) {
	callback, err := Listen()
	if err != nil {
		return token, "", err
	}
	defer callback.Close()
	cred := Credentials{ID: id}
	if id == "" {
		if cred, err = s.client.Register(ctx, s.server, callback.URI); err != nil {
			return token, "", err
		}
	}
	request, err := s.client.Authorize(s.server, cred, callback.URI, s.Resource, s.Scopes, proof)
	if err != nil {
		return token, "", err
	}
	if err := s.client.Try(ctx, request); err != nil {
		return token, "", &clientUnknown{err}
	}
	s.Ask(ctx, Prompt{URL: request.URL})
	token, err = s.client.Redeem(ctx, s.server, cred, request, callback, s.Resource)
	return token, cred.ID, err
}

func (s *Session) byDevice(
	ctx context.Context, id string, proof Proof,
) (token oauth.TokenResponse, _ string, err error) {
	cred := Credentials{ID: id}
	if id == "" {
		if cred, err = s.client.RegisterDevice(ctx, s.server); err != nil {
			return token, "", err
		}
	}
	request, err := s.client.BeginDevice(ctx, s.server, cred, s.Resource, s.Scopes, proof)
	if err != nil {
		return token, "", &clientUnknown{err}
	}
	s.Ask(ctx, Prompt{Device: request})
	token, err = s.client.AwaitDevice(ctx, s.server, cred, request, s.Resource)
	return token, cred.ID, err
}

func (s *Session) keep(kept Kept, t oauth.TokenResponse) (string, error) {
	kept.Access, kept.ExpiresAt = t.AccessToken, s.Now().Add(time.Duration(t.ExpiresIn)*time.Second)
	if t.RefreshToken != "" {
		kept.Refresh = t.RefreshToken
	}
	return t.AccessToken, s.File.write(kept)
}

// End revokes the stored tokens and removes them. It reports whether there were any.
func (s *Session) End(ctx context.Context) (was bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	release, err := s.File.lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	kept, err := s.File.read()
	if err != nil || kept.ClientID == "" {
		return false, err
	}
	if token := cmp.Or(kept.Refresh, kept.Access); token != "" {
		if err := s.find(ctx); err != nil {
			return true, err
		}
		if err := s.client.Revoke(ctx, s.server, Credentials{ID: kept.ClientID}, token); err != nil {
			return true, err
		}
	}
	return true, s.File.remove()
}
