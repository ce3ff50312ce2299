package authserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var errOtherResource = oauth.NewError(oauth.InvalidTarget, "The requested resource is not the one that was granted.")

// handleToken serves POST /token (OAuth 2.1 §3.2, AS-79).
func (s *Server) handleToken(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	if s.cfg.Broker != nil && p.Get("grant_type") == grantExchange {
		s.handleExchange(w, r, p)
		return
	}
	reply, err := s.token(r.Context(), r.Header, p)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, reply)
}

// token runs a token request through the shell, which authenticates the client and
// dispatches to the handler of the grant type.
func (s *Server) token(ctx context.Context, header http.Header, p form.Params) (*oauth.TokenResponse, error) {
	if p.Get("grant_type") == "" {
		return nil, oauth.NewError(oauth.InvalidRequest, "The parameter 'grant_type' is missing.")
	}
	audit.Note(ctx, slog.String("grant_type", form.Cut(p.Get("grant_type"), 100)))
	ctx, out := withOutcome(ctx)
	// The form is parsed already; of the header, only what authenticates matters.
	r := (&http.Request{Method: http.MethodPost, Header: http.Header{}, Form: p.Values, PostForm: p.Values}).WithContext(ctx)
	if credentials := header.Values("Authorization"); credentials != nil {
		r.Header["Authorization"] = credentials
	}
	req, err := s.fosite.NewAccessRequest(ctx, r, &shellSession{})
	if req == nil && errors.Is(err, fosite.ErrInvalidRequest) {
		err = oauth.NewError(oauth.UnsupportedGrantType, "The grant type is not supported.") // fosite's way of saying that no handler applies
	}
	if err == nil {
		_, err = s.fosite.NewAccessResponse(ctx, req)
	}
	if err != nil {
		err = fromShell(err)
		s.cfg.Audit.Record(ctx, audit.TokenRefused, refusal.Attr(err))
		return nil, err
	}
	return out.reply, nil
}

// populate shows fosite the reply that its handler has left, so that it knows the
// request was answered; what goes on the wire is the reply itself.
func populate(ctx context.Context, mine bool, resp fosite.AccessResponder) error {
	if !mine {
		return fosite.ErrUnknownRequest
	}
	reply := outcomeOf(ctx).reply
	if reply == nil {
		return errors.New("authserver: grant handler left no reply")
	}
	resp.SetAccessToken(reply.AccessToken)
	resp.SetTokenType(reply.TokenType)
	return nil
}

// tokenResource is the canonical resource that a token request names, "" when it
// names none (RFC 8707 §2.2, AS-108).
func (s *Server) tokenResource(ctx context.Context, p form.Params) (string, error) {
	requested := p.Resources()
	if len(requested) == 0 {
		return "", nil
	}
	catalog, err := s.catalog.Load(ctx)
	if err != nil {
		return "", refusal.Unavailable(err)
	}
	audit.Note(ctx, slog.String("resource", strings.Join(requested, " "))) // as it was asked for
	resource, err := catalog.Resolve(requested)
	if err != nil {
		return "", err
	}
	audit.Note(ctx, slog.String("resource", resource.URI), slog.String("resource_match", resource.Match))
	return resource.URI, nil
}
