package authserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/authserver/internal/shell"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/request"
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
	request.Of(r.Context()).Note(slog.String("grant_type", form.Cut(p.Get("grant_type"), 100)))
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

// reply answers a token request with the grant of its type.
func (g *grants) reply(r *http.Request, p form.Params) (any, error) {
	proof, err := g.proofs.Read(r.Header.Values(dpop.Header), g.endpoint)
	if err != nil {
		return nil, err
	}
	answer, ok := g.byType[p.Get("grant_type")]
	if !ok {
		return nil, grant.ErrUnsupported
	}
	return answer(r.Context(), tokenForm{
		Params:      p,
		credentials: credentials(r, p),
		proof:       proof,
		from:        network.Coarse(g.proxies.ClientAddr(r)),
	})
}

// tokenGrant answers the token requests of one grant type. A token exchange has its own form of
// reply (RFC 8693 §2.2.1).
type tokenGrant func(ctx context.Context, f tokenForm) (reply any, err error)

// authenticated returns the answers of h to authenticated clients.
func (g *grants) authenticated(h shell.Grant) tokenGrant {
	return func(ctx context.Context, f tokenForm) (any, error) { return g.shell.Token(ctx, h, f.token()) }
}

// asserted returns the answers of the grant for assertions, whose requests may name no client.
func asserted(h *grant.Bearer) tokenGrant {
	return func(ctx context.Context, f tokenForm) (any, error) { return h.Reply(ctx, f.token()) }
}

// exchanged returns the answers of the token exchange.
func (g *grants) exchanged(h *grant.Exchange) tokenGrant {
	return func(ctx context.Context, f tokenForm) (any, error) {
		if err := h.Offered(ctx); err != nil {
			return nil, err
		}
		client, err := g.clientAuth.Authenticate(ctx, f.credentials)
		if err == nil {
			err = g.proofs.Use(ctx, client, f.proof, f.from)
		}
		if err != nil {
			return nil, err
		}
		return h.Reply(ctx, client, f.exchange())
	}
}

// tokenForm is a token request before its grant reads it.
type tokenForm struct {
	form.Params
	credentials grant.Credentials
	proof       grant.Proof
	from        string // the source network
}

func (f tokenForm) token() grant.TokenRequest {
	return grant.TokenRequest{
		GrantType:    f.Get("grant_type"),
		Credentials:  f.credentials,
		Scopes:       scopes(f.Params),
		Resources:    f.Resources(),
		From:         f.from,
		Proof:        f.proof,
		Code:         f.Get("code"),
		Verifier:     f.Get("code_verifier"),
		RedirectURI:  f.Get("redirect_uri"),
		RefreshToken: f.Get("refresh_token"),
		DeviceCode:   f.Get("device_code"),
		Assertion:    f.Get("assertion"),
	}
}

func (f tokenForm) exchange() grant.ExchangeRequest {
	return grant.ExchangeRequest{
		Credentials:      f.credentials,
		Resources:        f.Resources(),
		Audience:         strings.Join(f.Values["audience"], " "), // several match no name
		Scopes:           scopes(f.Params),
		RequestedType:    f.Get("requested_token_type"),
		SubjectToken:     f.Get("subject_token"),
		SubjectTokenType: f.Get("subject_token_type"),
		ActorToken:       f.Get("actor_token"),
		ActorTokenType:   f.Get("actor_token_type"),
		Actor:            f.Get("actor"),
		ExpiresIn:        f.Get("expires_in"),
		HelperKey:        f.Get("dpop_jkt"),
		Proof:            f.proof,
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
		request.Of(r.Context()).Refuse(e)
		wire.WriteJSON(w, http.StatusBadRequest, staleBody{
			Error:  wire.Error{Code: e.Code, Description: oauth.SafeDescription(e.Description)},
			MaxAge: int64(stale.MaxAge / time.Second),
		})
		return
	case !errors.As(err, &needed):
		s.writeError(w, r, err)
		return
	}
	request.Of(r.Context()).Refuse(e)
	wire.WriteJSON(w, e.Status(), interactionBody{
		Error: wire.Error{Code: e.Code, Description: oauth.SafeDescription(e.Description)},
		URI:   needed.URL,
	})
}
