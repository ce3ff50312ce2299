package gosdk

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Options adjust NewHandler. The zero value, and nil, are safe defaults.
type Options struct {
	// Sessions configures the era up to 2025-11-25. Stateless and
	// DisableLocalhostProtection are set for it; EventStore defaults to a bounded one
	// in memory, SessionTimeout to 30 minutes.
	Sessions mcp.StreamableHTTPOptions
	// Stateless configures the era from 2026-07-28. Stateless,
	// PropagateRequestCancellation and DisableLocalhostProtection are set for it.
	Stateless mcp.StreamableHTTPOptions
	// ShowAll lists every tool, prompt and resource to every caller instead of those
	// the caller's scopes cover. A client can then find out by calling what further
	// scope it needs.
	ShowAll bool

	interactionPoll time.Duration // default: interactionPoll, for tests
}

// stateless is the first protocol version without sessions. Versions are dates and
// compare as strings.
const stateless = "2026-07-28"

const sessionTimeout = 30 * time.Minute

// NewHandler returns the guarded server with its RFC 9728 documents, ready to mount
// at the root of a host. It adds Middleware to s: call it once for a server. Do not put
// it behind g.Register or g.Protect: the guard takes the token out of the request, and a
// second one answers 401. Those take Unguarded.
func NewHandler(g *mcpresource.Guard, s *mcp.Server, o *Options) http.Handler {
	return g.Handler(Unguarded(g, s, o))
}

// Unguarded returns the server without the guard in front, for programs that mount
// guard and documents themselves. It must stand behind g.Protect: a request without
// a verified caller is refused.
func Unguarded(g *mcpresource.Guard, s *mcp.Server, o *Options) http.Handler {
	if o == nil {
		o = &Options{}
	}
	s.AddReceivingMiddleware(Middleware(g, o))
	server := func(*http.Request) *mcp.Server { return s }

	sessions := o.Sessions
	sessions.Stateless = false
	sessions.DisableLocalhostProtection = true // the guard owns Host and Origin; behind a local proxy the SDK's check would refuse every request
	if sessions.EventStore == nil {
		sessions.EventStore = mcp.NewMemoryEventStore(nil)
	}
	if sessions.SessionTimeout == 0 {
		sessions.SessionTimeout = sessionTimeout
	}
	modern := o.Stateless
	modern.Stateless = true
	modern.DisableLocalhostProtection = true
	modern.PropagateRequestCancellation = true // 2026-07-28: closing the stream cancels

	return bridge(eras{
		sessions:  mcp.NewStreamableHTTPHandler(server, &sessions),
		stateless: mcp.NewStreamableHTTPHandler(server, &modern),
	})
}

// eras sends a request to the handler of its protocol era.
type eras struct{ sessions, stateless http.Handler }

func (e eras) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Mcp-Protocol-Version") >= stateless {
		e.stateless.ServeHTTP(w, r)
		return
	}
	e.sessions.ServeHTTP(w, r)
}

// principalKey is where the principal travels in auth.TokenInfo.Extra.
const principalKey = "github.com/mcp-authd/mcp-authd/mcpresource.Principal"

// bridge hands the caller that the guard has verified to the SDK. The SDK takes
// token information only from its own bearer middleware, so that runs with a
// placeholder for the token, which is gone again before the SDK reads the headers. It
// also makes the SDK bind sessions to the whole identity: issuer, subject and client.
func bridge(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		p, ok := mcpresource.FromContext(ctx)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{Scopes: p.Scopes, Expiration: p.ExpiresAt, UserID: p.Key(), Extra: map[string]any{principalKey: p}}, nil
	}
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
	// The guard has judged the times already, with its own allowance for clocks.
	bearer := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true, ClockSkew: time.Hour})(bare)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := mcpresource.FromContext(r.Context()); !ok {
			bare.ServeHTTP(w, r) // a method that the policy leaves open; Middleware lets nothing else pass
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer verified")
		bearer.ServeHTTP(w, r)
	})
}

// Principal returns the verified caller of a request, in tools, prompts, resources
// and middleware. It is the caller of this request also inside a session.
func Principal(r mcp.Request) (*mcpresource.Principal, bool) {
	extra := r.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil, false
	}
	p, ok := extra.TokenInfo.Extra[principalKey].(*mcpresource.Principal)
	return p, ok
}
