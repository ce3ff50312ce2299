package authserver

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// honours reports whether anybody can tell whether a session at a provider stands.
func (s *Server) honours(upstreamID string) bool { return upstreamID == "" || s.cfg.Bindings != nil }

// checkBinding returns nil when a session at a provider stands, or there is none to ask
// about; storage.ErrRevoked when it does not; an *oauth.Error when nobody can tell now.
// maxAge is how old the provider's last word may be, zero: what the provider's
// configuration says.
func (s *Server) checkBinding(ctx context.Context, upstreamID string, maxAge time.Duration) error {
	switch {
	case !s.honours(upstreamID):
		return storage.ErrRevoked
	case upstreamID == "":
		return nil
	}
	return protocolError(s.cfg.Bindings.Check(ctx, upstreamID, maxAge))
}

// protocolError passes on what says something to clients and people, and the one sentinel
// that does to us. Whatever else a delegation returns is its store that failed.
func protocolError(err error) error {
	var ours *oauth.Error
	if err == nil || errors.As(err, &ours) || errors.Is(err, storage.ErrRevoked) {
		return err
	}
	return unavailable(err)
}

// stands reports whether what rests on a session at a provider may be called active
// (AS-218).
func (s *Server) stands(ctx context.Context, upstreamID string) (bool, error) {
	err := s.checkBinding(ctx, upstreamID, 0)
	if errors.Is(err, storage.ErrRevoked) {
		return false, nil
	}
	return err == nil, err
}

// visitor is visit for whoever is about to be given something: a sign-in that rests on a
// session at a provider counts only while that stands.
func (s *Server) visitor(ctx context.Context, token storage.Hash, consent storage.VisitKey) (*storage.Visit, error) {
	v, err := s.visit(ctx, token, consent)
	if err != nil || v == nil {
		return v, err
	}
	if active, err := s.stands(ctx, v.Session.UpstreamID); err != nil || !active {
		return nil, err
	}
	return v, nil
}

// errNoScopes is the cause of a refusal when policy leaves a person none of the scopes
// that were asked for.
var errNoScopes = errors.New("authserver: policy permits none of the scopes")

// permit returns those of scopes that policy gives the person behind a session at a
// provider: with all that they include, or a scope would be a way to what another one is
// kept for. offline_access is not a permission and stays.
func (s *Server) permit(ctx context.Context, upstreamID string, resource storage.Resource, scopes oauth.Scopes) (oauth.Scopes, error) {
	asked := scopes.Without(oauth.Scopes{oauth.OfflineAccess})
	if upstreamID == "" || len(asked) == 0 {
		return scopes, nil
	}
	if !s.honours(upstreamID) {
		return nil, storage.ErrRevoked
	}
	allowed, err := s.cfg.Bindings.Permit(ctx, upstreamID, resource.URI, policy.Implied(resource, asked))
	if err != nil {
		return nil, protocolError(err)
	}
	permitted := policy.Within(resource, asked, allowed)
	if len(permitted) == 0 {
		return nil, oauth.NewError(oauth.AccessDenied, "Your account may not use what the application asks for. If it should, ask the operator of this server.").Because(errNoScopes)
	}
	return scopes.Intersect(append(oauth.Scopes{oauth.OfflineAccess}, permitted...)), nil
}

// permitted narrows a request to what policy gives the person. storage.ErrNotFound when
// the session at the provider, and with it the sign-in, has ended.
func (s *Server) permitted(ctx context.Context, upstreamID string, a authorization) (authorization, error) {
	scopes, err := s.permit(ctx, upstreamID, a.resource.Resource, a.scopes)
	switch {
	case errors.Is(err, storage.ErrRevoked):
		err = storage.ErrNotFound
	case err == nil:
		a.scopes = scopes
	}
	return a, err
}

// narrowed is permitted for whoever a browser session belongs to. storage.ErrNotFound when
// it has ended.
func (s *Server) narrowed(ctx context.Context, token storage.Hash, a authorization) (authorization, error) {
	if s.cfg.Bindings == nil { // nobody's session rests on a provider, or it is not honoured
		return a, nil
	}
	v, err := s.visitor(ctx, token, storage.VisitKey{})
	switch {
	case err != nil:
		return a, err
	case v == nil:
		return a, storage.ErrNotFound
	}
	return s.permitted(ctx, v.Session.UpstreamID, a)
}

// farewell tells why a browser is no longer signed in, if a provider has ended it.
func (s *Server) farewell(ctx context.Context, token storage.Hash) string {
	if s.cfg.Bindings == nil || token == (storage.Hash{}) {
		return ""
	}
	provider, reason, err := s.cfg.Store.Farewell(ctx, token, s.cfg.Now())
	if err != nil {
		return "" // there is none, or the store fails: whatever else it is needed for will tell
	}
	return s.cfg.Bindings.Farewell(provider, reason)
}
