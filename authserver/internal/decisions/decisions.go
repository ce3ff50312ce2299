// Package decisions records the decisions of resource servers: of those in this process one by one,
// of those in other processes from reports. Decisions become steps of attempts (OB-01), and tool
// calls become entries of the audit log (OB-04).
package decisions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Store looks up grants, and records the reports that were accepted.
type Store interface {
	storage.Once
	Grant(ctx context.Context, id string) (storage.Grant, error)
	Connection(ctx context.Context, userID, id string, now time.Time) (storage.Connection, error)
}

// Config configures a Taker.
type Config struct {
	Issuer   string
	Tokens   *grant.Tokens
	Store    Store
	Attempts *attempt.Recorder // nil: no attempts are recorded
	Audit    *audit.Recorder
	Log      *slog.Logger
	Now      func() time.Time
}

// Taker records decisions. It is safe for concurrent use.
type Taker struct {
	c       Config
	reports *bounded.Limiter[string] // by client
}

// New returns a taker.
func New(c Config) *Taker { return &Taker{c, bounded.NewLimiter[string](maxClients, c.Now)} }

// youth is how long the first request of a grant is expected. After a restart, the server does not
// know which grants have been used before.
const youth = time.Hour

// Refused records a request from an address that a guard in this process is about to refuse with
// 401 or 403. It returns the reference that identifies it for the operator (OB-02).
func (t *Taker) Refused(r *http.Request, from netip.Addr, d oauth.Decision) string {
	d.Reference = attempt.NewReference()
	presented, issued := t.presented(r, d)
	t.c.Attempts.Refused(r, from, d, presented, t.refreshed(presented.Keys.Grant, issued))
	return d.Reference
}

// Read records a client that reads the RFC 9728 metadata of a resource, from an address.
func (t *Taker) Read(r *http.Request, from netip.Addr, resource string) {
	taken := attempt.Taken{Kind: attempt.Discovery, Path: r.URL.Path, Keys: attempt.Keys{Resource: resource}}
	taken.Answer.Status = http.StatusOK
	t.c.Attempts.End(r, request.New(attempt.NewReference(), t.c.Now(), from), taken)
}

// LetThrough records the first requests of a grant that a guard in this process has let through.
func (t *Taker) LetThrough(d oauth.Decision) {
	if t.young(d.GrantID) {
		t.c.Attempts.LetThrough(d)
	}
}

func (t *Taker) young(grant string) bool {
	made, ok := secrets.TimeOf(grant)
	return ok && t.c.Now().Sub(made) <= youth
}

// Called records a finished tool call that a guard in this process has reported. It writes only to
// the audit log, because the guard has logged the call already.
func (t *Taker) Called(ctx context.Context, c oauth.Call) { t.keep(ctx, c) }

func (t *Taker) keep(ctx context.Context, c oauth.Call, more ...slog.Attr) {
	if c.Clearance != "" {
		more = append(more, slog.String("clearance", c.Clearance))
	}
	t.c.Audit.Keep(ctx, audit.ToolCalled, append([]slog.Attr{
		slog.String("grant", c.GrantID), slog.String("user", c.Subject), slog.String("client_id", c.ClientID),
		slog.String("resource", c.Resource), slog.String("tool", c.Tool), slog.String("outcome", c.Outcome),
		slog.String("arguments_digest", c.Digest), slog.String("jti", c.TokenID), slog.Time("at", c.At),
		audit.Remote(c.Address),
	}, more...)...)
}

// presented returns the known facts about a refused token, and when it was issued. It trusts the
// token's claims only if this server signed it.
func (t *Taker) presented(r *http.Request, d oauth.Decision) (p attempt.Presented, issued time.Time) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return attempt.Presented{State: attempt.TokenNone}, issued
	}
	_, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	claims, err := t.c.Tokens.Own(r.Context(), strings.TrimSpace(token))
	switch {
	case errors.Is(err, refusal.ErrUnknownToken):
		return attempt.Presented{State: attempt.TokenForeign}, issued
	case err != nil:
		return attempt.Presented{}, issued
	}
	p.Audience, p.State = claims.Audience, t.state(r.Context(), d, claims)
	p.Keys.Client, p.Keys.Person, p.Keys.Grant = claims.ClientID, claims.Subject, claims.GrantID
	return p, time.Unix(claims.IssuedAt, 0)
}

// state returns why a token of this server was refused.
func (t *Taker) state(ctx context.Context, d oauth.Decision, claims oauth.AccessTokenClaims) attempt.TokenState {
	if claims.Expires <= t.c.Now().Unix() {
		return attempt.TokenExpired
	}
	if d.Error == oauth.InvalidToken {
		if stands, err := t.c.Tokens.Stands(ctx, claims); err == nil && !stands {
			return attempt.TokenEnded
		}
	}
	return attempt.TokenActive
}

// refreshed returns a function that reports whether a grant got a token after the given time. It
// asks the store, because any server may have issued it.
func (t *Taker) refreshed(grant string, issued time.Time) func(context.Context) bool {
	return func(ctx context.Context) bool {
		g, err := t.c.Store.Grant(ctx, grant)
		if err != nil {
			return false
		}
		c, err := t.c.Store.Connection(ctx, g.UserID, grant, t.c.Now())
		return err == nil && c.UsedAt.After(issued.Add(time.Second))
	}
}
