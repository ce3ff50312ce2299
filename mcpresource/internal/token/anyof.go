package token

import (
	"context"
	"errors"
	"fmt"
)

// AnyOf returns a validator that accepts a token if one of validators accepts it, such as one for
// each authorization server. They are called in this order, except that a validator with the token
// in its cache is first, so that many issuers cost no more than one. If none accepts the token, the
// error contains all their errors. It wraps ErrUnavailable if one of them could not decide, so that
// an outage does not make clients discard valid tokens.
func AnyOf(validators ...Validator) Validator { return anyOf(validators) }

type anyOf []Validator

// rememberer is a validator with a cache of tokens.
type rememberer interface{ remembers(token string) bool }

// Validate implements Validator.
func (a anyOf) Validate(ctx context.Context, c Credential) (*Principal, error) {
	first := a.known(c.Token)
	var said []error
	verdict := ErrInvalidToken
	for i := range a {
		switch { // first the validator that knows the token, then the others
		case first >= 0 && i == 0:
			i = first
		case i <= first:
			i--
		}
		p, err := a[i].Validate(ctx, c)
		if err == nil && p != nil {
			return p, nil
		}
		if Outage(err) {
			verdict = ErrUnavailable
		}
		said = append(said, err)
	}
	// %v, so that errors.Is ignores the joined errors
	return nil, fmt.Errorf("%w: by none of %d validators: %v", verdict, len(a), errors.Join(said...))
}

// known returns the index of the validator that has the token in its cache, or -1.
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

// Outage reports whether a validator's error leaves the token undecided. That includes errors that
// wrap both ErrUnavailable and ErrInvalidToken.
func Outage(err error) bool {
	return errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrInvalidToken)
}

// Judged returns a validator's error, wrapped in ErrUnavailable if it leaves the token undecided.
func Judged(err error) error {
	if Outage(err) {
		return fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	return err
}
