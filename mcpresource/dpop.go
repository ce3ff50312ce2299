package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// DPoP configures tokens that are bound to a key of the client (RFC 9449), which a thief of the
// token alone cannot use. Such tokens are always checked and never accepted as bearer tokens. If
// Config.DPoP is set, even to the zero value, challenges and metadata announce it.
type DPoP struct {
	// Required refuses bearer tokens.
	Required bool
	// Unannounced omits DPoP from the metadata and from challenges to requests without it, for
	// clients that cannot read two challenges. Bound tokens are still checked.
	Unannounced bool
	// NonceKey makes the guard require its nonce in every proof, so that proofs cannot be made in
	// advance (RFC 9449 §9). It is a secret of at least 32 bytes, the same in all replicas. A nonce
	// is valid for two to five minutes.
	NonceKey []byte
	// Replays stores the proofs that were used. Default: in memory. Several replicas should share
	// one.
	Replays Replays
}

const minNonce = 32

// bindings checks tokens that are bound to a key, whether DPoP is announced or not.
type bindings struct {
	DPoP
	challenges
	offered bool
	nonces  *dpop.Nonces // nil if no nonce is required
	now     func() time.Time
}

func newBindings(c *Config, challenges challenges) (*bindings, error) {
	b := &bindings{challenges: challenges, now: c.Now}
	if c.DPoP != nil {
		b.DPoP, b.offered = *c.DPoP, !c.DPoP.Unannounced || c.DPoP.Required
	}
	if n := len(b.NonceKey); n > 0 && n < minNonce {
		return nil, errors.New("mcpresource: DPoP: NonceKey is shorter than 32 bytes")
	} else if n > 0 {
		b.nonces = dpop.NewNonces(b.NonceKey, "mcpresource DPoP nonce")
	}
	if b.Replays == nil {
		b.Replays = dpop.NewMemory(c.Now)
	}
	return b, nil
}

// confirm checks that the client may use its token. A bound token requires a proof with its key,
// and an unbound token must have none (RFC 9449 §7, RS-207). It sends the next nonce.
func (b *bindings) confirm(w http.ResponseWriter, sent Credential, at *address, thumbprint string) *refusal {
	by := strings.EqualFold(sent.Scheme, "DPoP")
	switch {
	case thumbprint == "" && !by && !b.Required:
		return nil
	case thumbprint == "":
		return b.misbound("The access token is not bound to a key.")
	case !by: // RFC 9449 §7.2
		return b.misbound("The access token is bound to a key and needs a proof.")
	}
	if b.nonces != nil {
		w.Header().Set(dpop.NonceHeader, b.nonces.At(b.now()))
	}
	err := b.prove(sent, at, thumbprint)
	switch {
	case errors.Is(err, dpop.ErrNonce):
		return b.challenged(OutcomeInvalidToken, http.StatusUnauthorized, oauth.UseDPoPNonce,
			"The DPoP proof needs the nonce of this server.", err)
	case errors.Is(err, ErrInvalidToken):
		return b.challenged(OutcomeInvalidToken, http.StatusUnauthorized, oauth.InvalidDPoPProof,
			"The DPoP proof is not valid.", err)
	case err != nil:
		return &refusal{
			outcome: OutcomeUnavailable, status: http.StatusServiceUnavailable,
			text: "The access token cannot be checked now.", retry: time.Second, err: err,
		}
	}
	return nil
}

// misbound refuses a token because it is bound to a key, or because it is not.
func (b *bindings) misbound(text string) *refusal {
	refused := b.challenged(OutcomeInvalidToken, http.StatusUnauthorized, oauth.InvalidToken, text, nil)
	refused.binding = true
	return refused
}

// prove checks the proof of a request (RFC 9449 §4.3, RS-205), cheapest checks first. It records
// the proof as used only after all other checks have passed.
func (b *bindings) prove(sent Credential, at *address, thumbprint string) error {
	r := sent.Request
	proof, err := dpop.Check(r.Header.Values(dpop.Header), dpop.Request{
		Method:   r.Method,
		IsTarget: func(uri string) bool { return at.isTarget(r, uri) },
		Token:    sent.Token,
		Key:      thumbprint,
		Nonces:   b.nonces,
		Now:      b.now(),
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidToken, err)
	}
	first, err := b.Replays.Use(r.Context(), proof.Digest(), proof.Until())
	switch {
	case err != nil:
		return errors.Join(ErrUnavailable, err)
	case !first:
		return token.Invalid("the proof was used before")
	}
	return nil
}

// isTarget compares htu with the public URL of the request, without query and fragment (RFC 9449
// §4.3). The public URL counts because a proxy may have changed the local one.
func (a *address) isTarget(r *http.Request, uri string) bool {
	uri, _, _ = strings.Cut(uri, "#")
	uri, _, _ = strings.Cut(uri, "?")
	canonical, err := oauth.CanonicalResource(uri)
	return err == nil && (canonical == a.target ||
		canonical == strings.TrimRight(oauth.ResourceOrigin(a.resource)+r.URL.EscapedPath(), "/"))
}

// headers returns the values of WWW-Authenticate, one for each accepted scheme, the scheme of
// the request first (RFC 9110 §11.6.1, RFC 9449 §7.1, RS-206).
func (b *bindings) headers(refused *refusal, p *passage) []string {
	c := *refused.challenge
	c.ResourceMetadata = p.at.metadata // RS-16
	used := strings.EqualFold(p.caller.sent.Scheme, "DPoP")
	proof := c.Error == oauth.InvalidDPoPProof || c.Error == oauth.UseDPoPNonce
	var out []string
	if !b.Required && !proof {
		out = append(out, c.String())
	}
	if !b.offered && !used && !refused.binding {
		return out
	}
	if !used && !b.Required {
		c.Error, c.Description = "", "" // the other scheme was not tried
	}
	out = append(out, oauth.DPoPChallenge{BearerChallenge: c, Algorithms: dpop.Algorithms()}.String())
	if used {
		slices.Reverse(out)
	}
	return out
}

// Replays stores ids that may be used once.
type Replays interface {
	// Use records id until the given time and reports whether it was new. For two concurrent calls,
	// exactly one gets true. An id is 32 arbitrary bytes.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}
