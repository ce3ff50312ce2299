package grant

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Minter issues access tokens (RFC 9068, AS-107, AS-118).
type Minter struct {
	Issuer  string
	Keys    *keys.Manager
	Catalog *catalogue.Catalogue
	// Bindings says which tool calls the user must approve.
	Bindings binding.Checker
	TTL      time.Duration
	// Status returns the status claim for a grant's index, or nil.
	Status func(index int64) *oauth.Status
	Audit  *audit.Recorder
	Now    func() time.Time
}

// Demand refuses a request without a proof if the resource requires bound tokens. If the request
// names no resource (""), it refuses if all resources require them. It also reads the access rules,
// because a grant that uses something up calls it before that. Its error is an *oauth.Error.
func (m *Minter) Demand(ctx context.Context, resource string, proof Proof) error {
	if err := m.Bindings.Read(ctx); err != nil {
		return err
	}
	if proof.Given() {
		return nil
	}
	if resource == "" {
		_, all, err := m.Catalog.DemandProofs(ctx)
		if err == nil && all {
			err = errResourceProof
		}
		return err
	}
	r, _, err := m.Catalog.Lookup(ctx, resource)
	if err == nil && r.DPoP == storage.DPoPRequired {
		err = errResourceProof
	}
	return err
}

// issuance is a decision to issue tokens.
type issuance struct {
	grant    storage.Grant // ID and UserID are empty for a machine
	scopes   oauth.Scopes
	until    time.Time    // latest end of the access token; zero: the grant's end
	refresh  string       // may be ""
	issuedAt time.Time    // for a replay: the time of the first reply
	tokenID  string       // "": issue chooses a random id
	event    string       // audit event
	node     storage.Node // of a sub-agent; the zero Node: the client's own token
	act      *oauth.Actor // the actor; nil: the client itself
	proof    Proof        // the key that the access token is bound to
}

// reply signs the access token and returns the token response. Equal issuances give equal replies
// except for the remaining lifetime, because signatures are deterministic.
func (m *Minter) reply(ctx context.Context, i issuance) (*oauth.TokenResponse, error) {
	expires := i.issuedAt.Add(m.TTL)
	if expires.After(i.grant.ExpiresAt) {
		expires = i.grant.ExpiresAt
	}
	if !i.until.IsZero() && expires.After(i.until) {
		expires = i.until
	}
	claims := oauth.AccessTokenClaims{
		Issuer: m.Issuer, Expires: expires.Unix(), Audience: i.grant.Resource,
		Subject: i.grant.UserID, ClientID: i.grant.ClientID, IssuedAt: i.issuedAt.Unix(), TokenID: i.tokenID,
		Scope: i.scopes.Without(oauth.Scopes{oauth.OfflineAccess}).String(), GrantID: i.grant.ID,
		Status: m.Status(i.grant.StatusIndex), Confirmation: i.proof.Confirmation(),
	}
	claims.Act, claims.NodeID = i.act, i.node.ID
	if claims.Subject == "" {
		claims.Subject = i.grant.ClientID // a machine acts for itself (RFC 9068 §2.2)
	}
	if !i.grant.AuthTime.IsZero() {
		claims.AuthTime = i.grant.AuthTime.Unix()
	}
	claims.ACR, claims.AMR = acrOf(i.grant), ways.AMR(i.grant.Methods)
	if a := i.grant.Asserted; a != nil { // AS-231
		claims.AMR = a.AMR
	}
	var err error
	if claims.ApproveTools, err = m.approvals(ctx, i.grant); err != nil {
		return nil, err
	}
	token, err := m.Keys.Sign(ctx, oauth.AccessTokenType, claims)
	if err != nil {
		return nil, err
	}
	// OAuth 2.1 §3.2.3 (AS-81, AS-122); the scope is present even if it equals the requested one
	// (AS-82)
	return &oauth.TokenResponse{
		AccessToken: token, TokenType: tokenType(claims.Confirmation), ExpiresIn: max(0, expires.Unix()-m.Now().Unix()),
		RefreshToken: i.refresh, Scope: i.scopes.String(),
	}, nil
}

// approvals returns the tools whose calls the access rules make the user of a grant approve. Every
// access token of a user is made here, so none lacks them.
func (m *Minter) approvals(ctx context.Context, g storage.Grant) ([]string, error) {
	if g.UserID == "" || g.Resource == "" {
		return nil, nil
	}
	resource, known, err := m.Catalog.Lookup(ctx, g.Resource)
	if err != nil {
		return nil, err
	}
	if !known { // no server takes this token
		resource.URI = g.Resource
	}
	return m.Bindings.Approvals(ctx, g.UserID, resource)
}

// issue signs the tokens and records the issuance. It checks once more that required proofs are
// present; a grant that uses something up checks before that.
func (m *Minter) issue(ctx context.Context, i issuance) (*oauth.TokenResponse, error) {
	if err := m.Demand(ctx, i.grant.Resource, i.proof); err != nil {
		return nil, err
	}
	if i.tokenID == "" {
		i.tokenID = secrets.ID("")
	}
	reply, err := m.reply(ctx, i)
	if err != nil {
		return nil, err
	}
	attrs := []slog.Attr{
		slog.String("client_id", i.grant.ClientID), slog.String("user", i.grant.UserID),
		slog.String("resource", i.grant.Resource), slog.String("scope", i.scopes.String()),
		slog.String("grant", i.grant.ID), slog.String("jti", i.tokenID), assertedAttr(i.grant),
	}
	if i.node.ID != "" {
		attrs = append(attrs, audit.Node(i.node), slog.String("actors", names(i.act)))
	}
	m.Audit.Record(ctx, i.event, attrs...)
	return reply, nil
}

// assertedAttr returns the audit fields of a grant for an assertion, and an empty Attr for other
// grants.
func assertedAttr(g storage.Grant) slog.Attr {
	if g.TrustID == "" {
		return slog.Attr{}
	}
	attrs := []any{slog.String("trust", g.TrustID)}
	if a := g.Asserted; a != nil {
		attrs = append(attrs, slog.String("acr", a.ACR), slog.String("amr", strings.Join(a.AMR, " ")))
		if !g.AuthTime.IsZero() {
			attrs = append(attrs, slog.Int64("auth_time", g.AuthTime.Unix()))
		}
		if len(a.Act) > 0 {
			attrs = append(attrs, slog.String("act", string(a.Act)))
		}
	}
	return slog.Group("", attrs...)
}
