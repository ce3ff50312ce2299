package authserver

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// handleToken serves POST /token (OAuth 2.1 §3.2, AS-79).
func (s *Server) handleToken(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	if p.Get("grant_type") == "" {
		s.writeError(w, r, oauth.NewError(oauth.InvalidRequest, "The parameter 'grant_type' is missing."))
		return
	}
	audit.Note(r.Context(), slog.String("grant_type", form.Cut(p.Get("grant_type"), 100)))
	if nonce := s.grants.proofs.Nonce(); nonce != "" { // for the next proof, also after a success
		w.Header().Set(dpop.NonceHeader, nonce)
	}
	reply, err := s.grants.reply(r, p)
	if err != nil {
		s.cfg.Audit.Record(r.Context(), audit.TokenRefused, refusal.Attr(err))
		s.writeTokenError(w, r, p.Get("grant_type"), err)
		return
	}
	wire.WriteJSON(w, http.StatusOK, reply)
}

// reply answers a token request: with the grant for its type, which the shell selects, or with a
// token exchange, whose reply has its own form (RFC 8693 §2.2.1).
func (g *grants) reply(r *http.Request, p form.Params) (any, error) {
	proof, err := g.proofs.Read(r.Header.Values(dpop.Header), g.endpoint)
	if err != nil {
		return nil, err
	}
	from := network.Coarse(g.proxies.ClientAddr(r))
	if p.Get("grant_type") == oauth.GrantJWTBearer { // may have no client
		if g.bearer == nil {
			return nil, grant.ErrUnsupported
		}
		request := tokenRequest(r, p)
		request.From, request.Proof = from, proof
		return g.bearer.Reply(r.Context(), request)
	}
	if p.Get("grant_type") != oauth.GrantTokenExchange {
		request := tokenRequest(r, p)
		request.From, request.Proof = from, proof
		return g.shell.Token(r.Context(), request)
	}
	if err := g.exchange.Offered(r.Context()); err != nil {
		return nil, err
	}
	x := exchangeRequest(r, p)
	x.Proof = proof
	client, err := g.clientAuth.Authenticate(r.Context(), x.Credentials)
	if err == nil {
		err = g.proofs.Use(r.Context(), client, proof, from)
	}
	if err != nil {
		return nil, err
	}
	return g.exchange.Reply(r.Context(), client, x)
}

func tokenRequest(r *http.Request, p form.Params) grant.TokenRequest {
	return grant.TokenRequest{
		GrantType:    p.Get("grant_type"),
		Credentials:  credentials(r, p),
		Scopes:       scopes(p),
		Resources:    p.Resources(),
		Code:         p.Get("code"),
		Verifier:     p.Get("code_verifier"),
		RedirectURI:  p.Get("redirect_uri"),
		RefreshToken: p.Get("refresh_token"),
		DeviceCode:   p.Get("device_code"),
		Assertion:    p.Get("assertion"),
	}
}

func exchangeRequest(r *http.Request, p form.Params) grant.ExchangeRequest {
	return grant.ExchangeRequest{
		Credentials:      credentials(r, p),
		Resources:        p.Resources(),
		Audience:         strings.Join(p.Values["audience"], " "), // several match no name
		Scopes:           scopes(p),
		RequestedType:    p.Get("requested_token_type"),
		SubjectToken:     p.Get("subject_token"),
		SubjectTokenType: p.Get("subject_token_type"),
		ActorToken:       p.Get("actor_token"),
		ActorTokenType:   p.Get("actor_token_type"),
		Actor:            p.Get("actor"),
		ExpiresIn:        p.Get("expires_in"),
		HelperKey:        p.Get("dpop_jkt"),
	}
}

// scopes returns the requested scopes without clearance scopes, which are never granted.
func scopes(p form.Params) oauth.Scopes {
	asked, _ := oauth.ParseScopes(p.Get("scope")).WithoutClearances()
	return asked
}

// credentials returns the client credentials of a request.
func credentials(r *http.Request, p form.Params) grant.Credentials {
	c := grant.Credentials{
		ClientID:      p.Get("client_id"),
		Secret:        p.Get("client_secret"),
		Assertion:     p.Get("client_assertion"),
		AssertionType: p.Get("client_assertion_type"),
	}
	c.Header.Count = len(r.Header.Values("Authorization"))
	c.Header.ID, c.Header.Secret, c.Header.Basic = r.BasicAuth()
	return c
}

// interactionBody contains the page where the user can grant the missing access.
type interactionBody struct {
	wire.Error
	URI string `json:"interaction_uri"` // extension
}

// staleBody contains the maximum age of the user's sign-in (RFC 9470 §3).
type staleBody struct {
	wire.Error
	MaxAge int64 `json:"max_age"` // in seconds
}

func (s *Server) writeTokenError(w http.ResponseWriter, r *http.Request, grantType string, err error) {
	e := oauth.AsError(err)
	var needed *grant.InteractionError
	var stale *grant.StaleSignInError
	switch {
	case e.Code == oauth.AccessDenied, grantType == oauth.GrantDeviceCode && e.Code == oauth.SlowDown:
		writeDirect(w, r, http.StatusBadRequest, e) // RFC 6749 §5.2, RFC 8628 §3.5
		return
	case errors.As(err, &stale):
		noteError(r, e)
		wire.WriteJSON(w, http.StatusBadRequest, staleBody{
			Error:  wire.Error{Code: e.Code, Description: oauth.SafeDescription(e.Description)},
			MaxAge: int64(stale.MaxAge / time.Second),
		})
		return
	case !errors.As(err, &needed):
		s.writeError(w, r, err)
		return
	}
	noteError(r, e)
	wire.WriteJSON(w, e.Status(), interactionBody{
		Error: wire.Error{Code: e.Code, Description: oauth.SafeDescription(e.Description)},
		URI:   needed.URL,
	})
}
