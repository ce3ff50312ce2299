package mcpresource

import (
	"context"
	"errors"
	"fmt"
)

// AnyOf accepts the tokens that one of the validators accepts, such as one for each authorization
// server. They are asked in this order; one that remembers the token goes first, so that many
// issuers cost no more than one. When none accepts it the error holds what each has said, and
// wraps ErrUnavailable if one of them could not judge: an outage there must not make
// clients throw away good tokens.
func AnyOf(validators ...Validator) Validator { return anyOf(validators) }

type anyOf []Validator

// rememberer is a validator that has seen a token.
type rememberer interface{ remembers(token string) bool }

// Validate implements Validator.
func (a anyOf) Validate(ctx context.Context, c Credential) (*Principal, error) {
	first := a.known(c.Token)
	var said []error
	verdict := ErrInvalidToken
	for i := range a {
		switch { // the known one first, then the others in order
		case first >= 0 && i == 0:
			i = first
		case i <= first:
			i--
		}
		p, err := a[i].Validate(ctx, c)
		if err == nil && p != nil {
			return p, nil
		}
		if outage(err) {
			verdict = ErrUnavailable
		}
		said = append(said, err)
	}
	// what is joined must not decide
	return nil, fmt.Errorf("%w: by none of %d validators: %v", verdict, len(a), errors.Join(said...))
}

// known is the index of the validator that remembers a token, or -1.
func (a anyOf) known(token string) int {
	for i, v := range a {
		if r, ok := v.(rememberer); ok && r.remembers(token) {
			return i
		}
	}
	return -1
}

func (a anyOf) remembers(token string) bool { return a.known(token) >= 0 }

func (v *jwtValidator) remembers(token string) bool {
	_, ok := v.seen.lookup(token)
	return ok
}

func (v *introspector) remembers(token string) bool {
	_, ok := v.seen.lookup(token)
	return ok
}

// outage reports whether the error of a validator is no verdict. An error that wraps both is not a
// verdict either.
func outage(err error) bool {
	return errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrInvalidToken)
}
