package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Callers identifies the holders of tokens.
type Callers struct {
	Store storage.Users
	// Clients finds clients as the token endpoint does, in the store and in the configuration.
	Clients interface {
		Client(ctx context.Context, id string) (storage.Client, error)
	}
}

// ErrNoRole is returned if the user or program of a token administers nothing.
var ErrNoRole = errors.New("api: the caller has no role")

// Actor returns the holder of a token for a resource, with its current role. A user has the role of
// the account. A program must be a client that an administrator created for this resource, and that
// acts for itself. With admin:write it is an administrator, with admin:read alone an auditor. For
// sub-agents, workloads and all others, Actor returns ErrNoRole.
func (c Callers) Actor(ctx context.Context, p *mcpresource.Principal, resource string) (admin.Actor, error) {
	if len(p.Actors()) > 0 {
		return admin.Actor{}, ErrNoRole
	}
	if p.GrantID() == "" {
		return c.program(ctx, p, resource)
	}
	u, err := c.Store.User(ctx, p.Subject)
	if errors.Is(err, storage.ErrNotFound) {
		return admin.Actor{}, ErrNoRole
	}
	role := admin.RoleOf(u)
	if err == nil && role == "" {
		err = ErrNoRole
	}
	return admin.Actor{UserID: u.ID, Name: u.Name, ClientID: p.ClientID, Role: role, Proved: provedAt(p)}, err
}

func (c Callers) program(ctx context.Context, p *mcpresource.Principal, resource string) (admin.Actor, error) {
	client, err := c.Clients.Client(ctx, p.ClientID)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked):
		return admin.Actor{}, ErrNoRole
	case err != nil:
		return admin.Actor{}, err
	case !client.Operated(), client.Public(), p.Subject != client.ID,
		!slices.Contains(client.GrantTypes, oauth.GrantClientCredentials),
		!slices.Contains(client.Resources, resource):
		return admin.Actor{}, ErrNoRole
	}
	role := admin.Auditor
	if p.Scopes.Has(ScopeWrite) {
		role = admin.Administrator
	}
	return admin.Actor{ClientID: client.ID, Role: role, Program: true}, nil
}

// provedAt returns the authentication time from the token, or the zero time if the token has none.
func provedAt(p *mcpresource.Principal) time.Time {
	var claims struct {
		AuthTime int64 `json:"auth_time"`
	}
	if json.Unmarshal(p.Claims, &claims) != nil || claims.AuthTime <= 0 {
		return time.Time{}
	}
	return time.Unix(claims.AuthTime, 0)
}

// caller runs operations with the permissions of the caller of a request.
type caller struct {
	admin.Caller
	actor   admin.Actor
	release func() // called when the request ends
}

// authorize identifies the caller of a request, and checks the scope for an operation.
func (s *Server) authorize(r *http.Request, spec admin.Spec) (caller, *problem) {
	token, refused := bearer(r)
	if refused != nil {
		return caller{}, refused
	}
	p, err := s.c.Guard.Verify(r.Context(), mcpresource.Credential{Scheme: "Bearer", Token: token, Request: r})
	switch {
	case errors.Is(err, mcpresource.ErrInvalidToken):
		return caller{}, &problem{
			kind: kindUnknown, detail: "The token is not good, or not for this API. Sign in again.",
			challenge: &oauth.BearerChallenge{
				Error: oauth.InvalidToken, Scope: scopeFor(spec), Description: "The token is not good for this API.",
			},
		}
	case err != nil:
		return caller{}, &problem{kind: kindUnavailable, after: time.Second}
	}
	ctx := mcpresource.NewContext(r.Context(), p)
	if s.c.Guard.Require(ctx, scopeFor(spec)...) != nil {
		return caller{}, &problem{
			kind: kindScope, detail: "This operation needs the scope " + scopeFor(spec).String() + ".",
			challenge: &oauth.BearerChallenge{
				Error: oauth.InsufficientScope, Scope: scopeFor(spec),
				Description: "This operation needs another scope.",
			},
		}
	}
	return s.admit(ctx, p, spec)
}

// admit applies the caller's request limits, and looks up the caller's role.
func (s *Server) admit(ctx context.Context, p *mcpresource.Principal, spec admin.Spec) (caller, *problem) {
	release, err := s.c.Guard.Admit(ctx, mcpresource.Operation{Method: "tools/call", Name: spec.Name})
	if limited := (*mcpresource.LimitError)(nil); errors.As(err, &limited) {
		return caller{}, &problem{kind: kindLimited, after: limited.RetryAfter}
	}
	if err != nil {
		return caller{}, &problem{kind: kindUnavailable, after: time.Second}
	}
	actor, err := s.c.Callers.Actor(ctx, p, s.c.Root)
	switch {
	case errors.Is(err, ErrNoRole):
		release()
		return caller{}, &problem{
			kind: kindForbidden, detail: "You have no role here. An administrator can give you one.",
		}
	case err != nil:
		release()
		return caller{}, s.explain(ctx, err)
	}
	return caller{s.c.Service.As(actor), actor, release}, nil
}

// maxToken limits a token, in bytes.
const maxToken = 16 << 10

// bearer returns the token of a request (RFC 6750 §2.1).
func bearer(r *http.Request) (string, *problem) {
	refused := &problem{
		kind: kindUnknown, detail: "Send a token of this server: Authorization: Bearer TOKEN.",
		challenge: &oauth.BearerChallenge{Scope: oauth.Scopes{ScopeRead}},
	}
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", refused
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return "", refused
	}
	return token, nil
}
