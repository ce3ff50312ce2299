package oauth

import (
	"cmp"
	"encoding/json"
	"errors"
)

// MaxActors is the maximum number of actors in a chain.
const MaxActors = 8

// maxActorText is the maximum length of an actor's name, issuer or id, in bytes.
const maxActorText = 512

// Actor identifies a party that acts for the subject of a token (RFC 8693 §4.1). The outermost
// Actor is the current one, and Act is the previous actor that delegated to it. Use only the
// outermost for access decisions; the others are history.
type Actor struct {
	Subject  string `json:"sub,omitempty"`       // assigned by Issuer
	Issuer   string `json:"iss,omitempty"`       // "" means the issuer of the token
	ClientID string `json:"client_id,omitempty"` // the actor's application, if known
	NodeID   string `json:"nid,omitempty"`       // extension: the sub-agent's node, for revocation
	Act      *Actor `json:"act,omitempty"`       // the previous actor; nil for the first
}

// Errors that ParseActor returns.
var (
	ErrActor      = errors.New("oauth: the claim act is not an object that names an actor")
	ErrManyActors = errors.New("oauth: the claim act names too many actors")
)

// ParseActor reads an act claim with up to MaxActors actors. It returns nil for null or an empty
// claim, and ignores members that [Actor] does not have. Its errors are ErrActor and ErrManyActors.
func ParseActor(claim []byte) (*Actor, error) {
	if len(claim) == 0 {
		return nil, nil
	}
	var first *Actor
	if json.Unmarshal(claim, &first) != nil {
		return nil, ErrActor
	}
	n := 0
	for a := first; a != nil; a = a.Act {
		if n++; n > MaxActors {
			return nil, ErrManyActors
		}
		for _, s := range []string{a.Subject, a.Issuer, a.ClientID, a.NodeID} {
			if len(s) > maxActorText {
				return nil, ErrActor
			}
		}
	}
	return first, nil
}

// Name returns the actor's name for logs: its subject, else its client id, else "unnamed".
func (a Actor) Name() string { return cmp.Or(a.Subject, a.ClientID, "unnamed") }

// Chain returns the actors, the current one first, or an empty slice for nil.
func (a *Actor) Chain() (out []Actor) {
	for ; a != nil && len(out) < MaxActors; a = a.Act {
		one := *a
		one.Act = nil
		out = append(out, one)
	}
	return out
}

// ChainOf reverses Chain. It returns nil for an empty chain.
func ChainOf(actors []Actor) (first *Actor) {
	for i := len(actors) - 1; i >= 0; i-- {
		one := actors[i]
		one.Act = first
		first = &one
	}
	return first
}
