package users

import (
	"context"
	"fmt"
	"time"

	"github.com/alexedwards/argon2id"
)

// hasher hashes passwords, a bounded number at once: each takes tens of megabytes,
// and a hundred sign-ins at once must not take gigabytes.
type hasher struct {
	params *argon2id.Params
	slots  chan struct{}
	dummy  string
}

func newHasher(params *argon2id.Params, concurrent int) *hasher {
	h := &hasher{params: params, slots: make(chan struct{}, concurrent)}
	// The hash that unknown accounts are compared with, so that they cost as much
	// time as known ones. Nobody knows a password for it.
	h.dummy, _ = argon2id.CreateHash("no password has this hash", params)
	return h
}

func (h *hasher) acquire(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Second):
		return &ThrottledError{RetryAfter: 5 * time.Second}
	}
}

func (h *hasher) release() { <-h.slots }

func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	if err := h.acquire(ctx); err != nil {
		return "", err
	}
	defer h.release()
	hash, err := argon2id.CreateHash(password, h.params)
	if err != nil {
		return "", fmt.Errorf("users: hash password: %w", err)
	}
	return hash, nil
}

// matches compares in constant time and reports whether the hash was made with
// other parameters than ours. An empty hash costs the same and matches nothing.
func (h *hasher) matches(ctx context.Context, password, hash string) (ok, stale bool, err error) {
	if err := h.acquire(ctx); err != nil {
		return false, false, err
	}
	defer h.release()
	if hash == "" || len(password) > maxPassword {
		_, _, err := argon2id.CheckHash("", h.dummy)
		return false, false, err
	}
	ok, used, err := argon2id.CheckHash(password, hash)
	if err != nil {
		return false, false, fmt.Errorf("users: stored password hash: %w", err)
	}
	return ok, *used != *h.params, nil
}
