package oauth

import (
	"cmp"
	"encoding/json"
	"errors"
)

// MaxActors is how many actors a chain names at most.
const MaxActors = 8

// maxActorText is how long what names an actor may be, in bytes.
const maxActorText = 512

// Actor is who acts for the subject of a token (RFC 8693 §4.1): the one that acts now, and in Act
// the one before it, from which it has what it may do. Only the first is for decisions about access;
// the others tell how the token came to be.
type Actor struct {
	Subject  string `json:"sub,omitempty"`       // the name of the actor, by its issuer
	Issuer   string `json:"iss,omitempty"`       // who names it; "": the issuer of the token
	ClientID string `json:"client_id,omitempty"` // the application that it is, where that is said
	NodeID   string `json:"nid,omitempty"`       // ours: the node of a helper, by which it is cut
	Act      *Actor `json:"act,omitempty"`       // the actor before it; nil for the first
}

// The errors of ParseActor.
var (
	ErrActor      = errors.New("oauth: the claim act is not an object that names an actor")
	ErrManyActors = errors.New("oauth: the claim act names too many actors")
)

// ParseActor reads a claim act of up to MaxActors actors; nil for null or nothing. Members of an
// actor that are not those of [Actor] are left out. ErrActor and ErrManyActors.
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

// Name is what an actor is called in logs: its subject, else its client id, else "unnamed".
func (a Actor) Name() string { return cmp.Or(a.Subject, a.ClientID, "unnamed") }

// Chain returns the actors, the one that acts now first; none for nil.
func (a *Actor) Chain() (out []Actor) {
	for ; a != nil && len(out) < MaxActors; a = a.Act {
		one := *a
		one.Act = nil
		out = append(out, one)
	}
	return out
}

// ChainOf is the reverse of Chain; nil for an empty chain.
func ChainOf(actors []Actor) (first *Actor) {
	for i := len(actors) - 1; i >= 0; i-- {
		one := actors[i]
		one.Act = first
		first = &one
	}
	return first
}
