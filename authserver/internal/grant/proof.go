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
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Proof is the key that a request has proved to hold (RFC 9449 §5). The zero value means no proof.
type Proof struct {
	Thumbprint string // of the key (RFC 7638), or ""

	id    string // identifies the proof for replay detection
	until time.Time
}

// Given reports whether there was a proof.
func (p Proof) Given() bool { return p.Thumbprint != "" }

// Confirmation returns the cnf claim of a token that is bound to the key (RFC 9449 §6, AS-212), or
// nil for a bearer token.
func (p Proof) Confirmation() *oauth.Confirmation {
	if !p.Given() {
		return nil
	}
	return &oauth.Confirmation{Thumbprint: p.Thumbprint}
}

// tokenType returns the token_type of an access token (RFC 9449 §5, AS-122).
func tokenType(c *oauth.Confirmation) string {
	if c != nil {
		return "DPoP"
	}
	return "Bearer"
}

// Errors for requests with a missing or invalid proof (RFC 9449 §5).
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

// Replays records ids that may be used once.
type Replays interface {
	// Use records id until the given time, and reports whether it was new. If two calls are
	// concurrent, one gets true. An id is 32 arbitrary bytes.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}

// Limits on proofs of clients that the operator does not vouch for; each proof is kept for minutes.
// One limit is per client, one per network, because clients are free to register.
var (
	proofRate        = bounded.Rate{Every: time.Minute / 300, Burst: 300}
	networkProofRate = bounded.Rate{Every: time.Minute / 3000, Burst: 3000}
)

// Proofs verifies the DPoP proofs of client requests.
type Proofs struct {
	// Nonces returns the nonces that proofs must carry; nil: no nonce is required.
	Nonces  func() *dpop.Nonces
	Replays Replays
	Clients *clients.Finder
	Limits  *allowance.Limits
	Now     func() time.Time
	used    *allowance.Limiter
}

// NewProofs adds the limit for unvouched clients to p.
func NewProofs(p Proofs) *Proofs {
	p.used = p.Limits.Limiter("proofs", limitedClients)
	return &p
}

// Nonce returns the nonce for the next proof, or "" if it is not required.
func (p *Proofs) Nonce() string {
	if p.Nonces == nil {
		return ""
	}
	return p.Nonces().At(p.Now())
}

// Read checks the proof of a POST request to one of this server's URLs, if there is one (RFC 9449
// §4.3, AS-211). headers are the values of its DPoP header. Its error is an *oauth.Error. The proof
// is valid only after Use has accepted it.
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
	case err != nil: // a dpop.Error has a fixed text
		return Proof{}, oauth.NewError(oauth.InvalidDPoPProof, "The DPoP proof is not valid: "+err.Error()+".")
	}
	return Proof{Thumbprint: proof.Thumbprint(), id: proof.Digest(), until: proof.Until()}, nil
}

// Use records a proof so that it is not accepted again, after its client has authenticated. It
// refuses a request without a proof if the client must always send one. from is the request's
// network. Its error is an *oauth.Error.
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

// boundChallenge returns the stored challenge of a code that is bound to a key. Only a request with
// the verifier and a proof of the key produces the same value (RFC 9449 §10).
func boundChallenge(challenge, thumbprint string) string {
	if thumbprint == "" {
		return challenge
	}
	return challenge + "." + thumbprint
}
