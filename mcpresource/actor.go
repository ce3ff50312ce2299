package mcpresource

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Actors returns who acts for the subject of the token (RFC 8693 §4.1), none when the application
// itself calls: the first one is the helper that calls now, the next the one that it got its token
// from, and so on, up to [oauth.MaxActors]. Names are what the application says, and those of other
// issuers what these say: show and log them, and decide by Scopes and by [Rules.Direct].
func (p *Principal) Actors() []oauth.Actor {
	chain, _ := p.acting()
	return chain
}

// acting also returns an error for a token whose claim act cannot be read.
func (p *Principal) acting() ([]oauth.Actor, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.actors != nil || p.actorsKnown:
		return p.actors, nil
	case len(p.Claims) == 0:
		return nil, nil
	}
	var says struct {
		Act json.RawMessage `json:"act"`
	}
	if err := json.Unmarshal(p.Claims, &says); err != nil {
		return nil, err
	}
	first, err := oauth.ParseActor(says.Act)
	return first.Chain(), err
}

// setActors keeps what a claim act says, which is invalid when it says too much, or nothing that can
// be understood: a policy that asks who acts must get an answer.
func (p *Principal) setActors(claim json.RawMessage) error {
	first, err := oauth.ParseActor(claim)
	if err != nil {
		return invalid("who acts cannot be read")
	}
	p.actors, p.actorsKnown = first.Chain(), true
	return nil
}

// errHelper is what stands behind the refusal of a helper.
var errHelper = errors.New("only the application itself may, and no helper of it")

// direct returns an error that wraps ErrForbidden when only the application itself may, and someone
// acts for it.
func (p *Principal) direct(need Requirement) error {
	if !need.Direct {
		return nil
	}
	chain, err := p.acting()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	case len(chain) > 0:
		return fmt.Errorf("%w: %w", ErrForbidden, errHelper)
	}
	return nil
}

// actorNames are the names of a chain for the log, the one that acts now first; "" when no actor is named.
func actorNames(chain []oauth.Actor) string {
	if len(chain) == 0 {
		return ""
	}
	out := make([]string, len(chain))
	for i, a := range chain {
		out[i] = cutText(a.Name())
	}
	return strings.Join(out, " ")
}
