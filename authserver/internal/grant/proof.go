package grant

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Proof is the key that a request has proved to have (RFC 9449 §5). The zero value: there was no
// proof.
type Proof struct {
	Thumbprint string // of the key (RFC 7638); "": none

	id    string // by which the proof is remembered
	until time.Time
}

// Given reports whether there was a proof.
func (p Proof) Given() bool { return p.Thumbprint != "" }

// Confirmation is the cnf claim of a token that is bound to the key (RFC 9449 §6, AS-212), nil for a
// bearer token.
func (p Proof) Confirmation() *oauth.Confirmation {
	if !p.Given() {
		return nil
	}
	return &oauth.Confirmation{Thumbprint: p.Thumbprint}
}

// tokenType is the token_type of an access token (RFC 9449 §5, AS-122).
func tokenType(c *oauth.Confirmation) string {
	if c != nil {
		return "DPoP"
	}
	return "Bearer"
}

// The refusals of requests whose proof is not there, or no good (RFC 9449 §5).
var (
	errClientProof = oauth.NewError(oauth.InvalidDPoPProof,
		"The client is registered with dpop_bound_access_tokens: send a DPoP proof.")
	errResourceProof = oauth.NewError(oauth.InvalidDPoPProof,
		"This MCP server takes no tokens but those that are bound to a key: send a DPoP proof.")
	errCodeProof = oauth.NewError(oauth.InvalidDPoPProof,
		"The authorization code is bound to a key by dpop_jkt: send a DPoP proof of that key.")
	errRefreshProof = oauth.NewError(oauth.InvalidDPoPProof,
		"The refresh token is bound to a key: send a DPoP proof of that key.")
	errRefreshKey = oauth.NewError(oauth.InvalidGrant,
		"The refresh token is bound to another key than that of the DPoP proof.")
	errSubjectProof = oauth.NewError(oauth.InvalidDPoPProof,
		"The subject token is bound to a key: send a DPoP proof of that key.")
	errProofUsed = oauth.NewError(oauth.InvalidDPoPProof, "The DPoP proof was used before: make one for each request.")
	errNonce     = oauth.NewError(oauth.UseDPoPNonce,
		"The DPoP proof needs the nonce of this server, which is in the header DPoP-Nonce of this answer.")
)

// Replays remembers what may be used once.
type Replays interface {
	// Use records id until then, and reports whether it was new; of two concurrent calls, one gets
	// true. An id is 32 bytes of any value.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}

// What clients unknown to the operator may use of proofs, each of which is kept for minutes: one
// client, and all of one network, since clients cost nothing to register.
var (
	proofRate        = bounded.Rate{Every: time.Minute / 300, Burst: 300}
	networkProofRate = bounded.Rate{Every: time.Minute / 3000, Burst: 3000}
)

// Proofs judges the proofs of requests of clients.
type Proofs struct {
	// Nonces are those that proofs have to carry now; nil: none are demanded.
	Nonces  func() *dpop.Nonces
	Replays Replays
	Clients *clients.Finder
	Limits  *allowance.Limits
	Now     func() time.Time
	used    *allowance.Limiter
}

// NewProofs completes p with a limit on what strangers may use.
func NewProofs(p Proofs) *Proofs {
	p.used = p.Limits.Limiter("proofs", limitedClients)
	return &p
}

// Nonce is what the next proof has to carry, "" when none is demanded.
func (p *Proofs) Nonce() string {
	if p.Nonces == nil {
		return ""
	}
	return p.Nonces().At(p.Now())
}

// Read checks the proof of a POST request to a URL of ours, if there is one (RFC 9449 §4.3, AS-211):
// headers are the values of its DPoP header. An *oauth.Error. The proof is good once Use has said so,
// too.
func (p *Proofs) Read(headers []string, url string) (Proof, error) {
	if len(headers) == 0 {
		return Proof{}, nil
	}
	r := dpop.Request{
		Method:   "POST",
		IsTarget: func(uri string) bool { return dpop.SameTarget(uri, url) },
		Now:      p.Now(),
	}
	if p.Nonces != nil {
		r.Nonces = p.Nonces()
	}
	proof, err := dpop.Check(headers, r)
	switch {
	case errors.Is(err, dpop.ErrNonce):
		return Proof{}, errNonce.Because(err)
	case err != nil: // a dpop.Error, which is a fixed sentence
		return Proof{}, oauth.NewError(oauth.InvalidDPoPProof, "The DPoP proof is not valid: "+err.Error()+".")
	}
	return Proof{Thumbprint: proof.Thumbprint(), id: proof.Digest(), until: proof.Until()}, nil
}

// Use makes it the last time that a proof is accepted, once its client has authenticated, and
// refuses a request without a proof of a client that always has one. from is the network that the
// request comes from. An *oauth.Error.
func (p *Proofs) Use(ctx context.Context, c storage.Client, proof Proof, from string) error {
	switch {
	case !proof.Given() && c.Demands().BoundTokens: // RFC 9449 §5.2, AS-142
		return errClientProof
	case !proof.Given():
		return nil
	case !p.Clients.Vouched(c) && p.used.Take(ctx,
		allowance.Draw{Key: "client " + c.ID, Rate: proofRate},
		allowance.Draw{Key: "network " + from, Rate: networkProofRate}) > 0:
		return slowDown(proofRate, "Too many DPoP proofs from this client. Please wait.")
	}
	first, err := p.Replays.Use(ctx, proof.id, proof.until)
	switch {
	case err != nil:
		return refusal.Unavailable(err)
	case !first:
		return errProofUsed
	}
	return nil
}

// boundChallenge stands where a code has its PKCE challenge when the code is bound to a key: only a
// request with the verifier and a proof of the key has the same (RFC 9449 §10).
func boundChallenge(challenge, thumbprint string) string {
	if thumbprint == "" {
		return challenge
	}
	return challenge + "." + thumbprint
}
