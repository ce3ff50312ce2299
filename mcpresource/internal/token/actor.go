package token

import (
	"encoding/json"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Actors returns the actors of the token (RFC 8693 §4.1), up to [oauth.MaxActors], or none if the
// application itself calls. The first is the sub-agent that calls now, the next the actor that
// delegated to it, and so on. Names come from the application or from other issuers: show and log
// them, but base decisions on Scopes and [Rules.Direct].
func (p *Principal) Actors() []oauth.Actor {
	chain, _ := Acting(p)
	return chain
}

// Acting returns the actors, or an error if the act claim cannot be read.
func Acting(p *Principal) ([]oauth.Actor, error) {
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

// setActors stores the actors of an act claim. It returns an error if the claim has too many actors
// or cannot be read, because policies depend on it.
func (p *Principal) setActors(claim json.RawMessage) error {
	first, err := oauth.ParseActor(claim)
	if err != nil {
		return Invalid("who acts cannot be read")
	}
	p.actors, p.actorsKnown = first.Chain(), true
	return nil
}
