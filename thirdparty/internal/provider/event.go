package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/coreos/go-oidc/v3/oidc"
)

// ErrForged means that none of the provider's keys has signed a security event token.
var ErrForged = errors.New("the token is by no key of the provider")

func (u *plainOAuth) VerifyEvent(ctx context.Context, token string) ([]byte, error) {
	if u.eventKeys == nil {
		return nil, fmt.Errorf("%w: its keys are not known", ErrUnsupported)
	}
	return verifyEvent(ctx, u.eventKeys, token)
}

func (p *openID) VerifyEvent(ctx context.Context, token string) ([]byte, error) {
	if p.eventKeys != nil {
		return verifyEvent(ctx, p.eventKeys, token)
	}
	e, err := p.locate(ctx)
	if err != nil {
		return nil, err
	}
	return verifyEvent(ctx, e.eventKeys, token)
}

func verifyEvent(ctx context.Context, keys oidc.KeySet, token string) ([]byte, error) {
	payload, err := keys.VerifySignature(ctx, token)
	if errors.Is(err, errNoKey) {
		return nil, ErrForged
	}
	return payload, err
}
