package grant

import (
	"context"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Exchange is the token exchange grant (RFC 8693). Clients use it for several purposes; each is an
// ExchangeKind.
type Exchange struct {
	// Kinds are asked in this order; the first match answers. The last one answers all other
	// requests.
	Kinds []ExchangeKind
}

// ExchangeKind is one purpose of a token exchange.
type ExchangeKind interface {
	// offered reports whether any client can use the kind.
	offered(ctx context.Context) (bool, error)
	// asked reports whether a request is for this kind, even if it is invalid.
	asked(r ExchangeRequest) bool
	// reply answers a request of an authenticated client. Its error is an *oauth.Error, possibly
	// wrapped.
	reply(ctx context.Context, client storage.Client, r ExchangeRequest) (oauth.ExchangeResponse, error)
}

// ExchangeRequest is a token exchange request, in the order of RFC 8693 §2.1.
type ExchangeRequest struct {
	Credentials      Credentials // of the client
	Resources        []string    // resource
	Audience         string      // audience
	Scopes           oauth.Scopes
	RequestedType    string // requested_token_type: OPTIONAL
	SubjectToken     string // subject_token: REQUIRED
	SubjectTokenType string // subject_token_type: REQUIRED
	ActorToken       string // actor_token
	ActorTokenType   string // actor_token_type
	Actor            string // actor: extension, OPTIONAL, the name of a sub-agent
	ExpiresIn        string // expires_in: extension, OPTIONAL, the requested lifetime in seconds
	HelperKey        string // dpop_jkt: extension, OPTIONAL, the thumbprint of a sub-agent's key
	Proof            Proof  // of the client's key (RFC 9449 §5); provider tokens are not bound to it
}

// errHelperKey refuses dpop_jkt for other kinds. If it were ignored, the client would believe that
// the token is bound to that key.
var errHelperKey = oauth.NewError(oauth.InvalidRequest,
	"The parameter 'dpop_jkt' is for the access tokens of helpers alone.")

// forProvider reports whether the audience is a provider: resources are URLs, provider ids are not.
func (r ExchangeRequest) forProvider() bool {
	return r.Audience != "" && !strings.Contains(r.Audience, ":")
}

// Reply lets the matching kind answer a request.
func (g *Exchange) Reply(
	ctx context.Context, client storage.Client, r ExchangeRequest,
) (oauth.ExchangeResponse, error) {
	last := len(g.Kinds) - 1
	for _, k := range g.Kinds[:last] {
		if k.asked(r) {
			return k.reply(ctx, client, r)
		}
	}
	return g.Kinds[last].reply(ctx, client, r)
}

// Offered returns ErrUnsupported if no kind is offered.
func (g *Exchange) Offered(ctx context.Context) error {
	for _, k := range slices.Backward(g.Kinds) { // only the first kind reads the store
		switch ok, err := k.offered(ctx); {
		case err != nil:
			return refusal.Unavailable(err)
		case ok:
			return nil
		}
	}
	return ErrUnsupported
}
