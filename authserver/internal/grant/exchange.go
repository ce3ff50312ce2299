package grant

import (
	"context"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Exchange is the token exchange (RFC 8693): one grant type, under which clients ask for several
// things. Each is an ExchangeKind.
type Exchange struct {
	// Kinds are asked in this order; the first that a request is for answers it. The last one answers
	// what is for no other.
	Kinds []ExchangeKind
}

// ExchangeKind is one thing that clients exchange tokens for.
type ExchangeKind interface {
	// offered reports whether the kind is of use to any client.
	offered(ctx context.Context) (bool, error)
	// asked reports whether a request is for this kind, be it a faulty one.
	asked(r ExchangeRequest) bool
	// reply answers a request of a client that has authenticated. An *oauth.Error, wrapped or not.
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
	Actor            string // actor: ours, OPTIONAL, the name of a helper
	ExpiresIn        string // expires_in: ours, OPTIONAL, the lifetime that is asked for, in seconds
	HelperKey        string // dpop_jkt: ours, OPTIONAL, the thumbprint of the key of a helper
	Proof            Proof  // of the client's key (RFC 9449 §5); tokens of providers are not bound to it
}

// errHelperKey: ignored, it would leave the client believe that the token is bound to that key.
var errHelperKey = oauth.NewError(oauth.InvalidRequest,
	"The parameter 'dpop_jkt' is for the access tokens of helpers alone.")

// forProvider reports whether the audience is that of a provider: resources are URLs, the ids of
// providers are not.
func (r ExchangeRequest) forProvider() bool {
	return r.Audience != "" && !strings.Contains(r.Audience, ":")
}

// Reply answers a request by the kind that it asks for.
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

// Offered returns ErrUnsupported while there is nothing to exchange tokens for.
func (g *Exchange) Offered(ctx context.Context) error {
	for _, k := range slices.Backward(g.Kinds) { // the first alone asks the store
		switch ok, err := k.offered(ctx); {
		case err != nil:
			return refusal.Unavailable(err)
		case ok:
			return nil
		}
	}
	return ErrUnsupported
}
