package authserver

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/storage"
)

// visitor is visit for whoever is about to be given something: a sign-in that rests on a
// session at a provider counts only while that stands.
func (s *Server) visitor(ctx context.Context, token storage.Hash, consent storage.VisitKey) (*storage.Visit, error) {
	v, err := s.visit(ctx, token, consent)
	if err != nil || v == nil {
		return v, err
	}
	if active, err := s.bindings.Stands(ctx, v.Session.UpstreamID); err != nil || !active {
		return nil, err
	}
	return v, nil
}

// permitted narrows a request to what policy gives the person. storage.ErrNotFound when
// the session at the provider, and with it the sign-in, has ended.
func (s *Server) permitted(ctx context.Context, upstreamID string, a authorization) (authorization, error) {
	scopes, err := s.bindings.Permit(ctx, upstreamID, a.resource.Resource, a.scopes)
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
