package users

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/alexedwards/argon2id"

	"github.com/mcp-authd/mcp-authd/internal/span"
)

// hasher hashes passwords with bounded concurrency: each hash uses tens of megabytes, and a hundred
// sign-ins at once must not use gigabytes. One slot is reserved for known browsers, so that
// strangers cannot block everyone else.
type hasher struct {
	params    *argon2id.Params
	slots     chan struct{}
	strangers chan struct{}
	leftover  leftover
	decoy     string
}

func newHasher(params *argon2id.Params, concurrent int) *hasher {
	return &hasher{
		params: params, slots: make(chan struct{}, concurrent), strangers: make(chan struct{}, max(concurrent-1, 1)),
		decoy: decoy(params),
	}
}

// decoy returns the hash that passwords for unknown accounts are compared with, so that they take
// as long as for known accounts. It consists of random bytes, and no password matches it.
func decoy(p *argon2id.Params) string {
	part := func(n uint32) string {
		b := make([]byte, n)
		_, _ = rand.Read(b) // never fails
		return base64.RawStdEncoding.EncodeToString(b)
	}
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", p.Memory, p.Iterations, p.Parallelism,
		part(p.SaltLength), part(p.KeyLength))
}

// acquire takes a slot. The caller must release it.
func (h *hasher) acquire(ctx context.Context, known bool) (release func(), err error) {
	lines := []chan struct{}{h.strangers, h.slots}
	if known {
		lines = lines[1:]
	}
	release = func() {}
	late := time.After(10 * time.Second)
	for _, line := range lines {
		before := release
		select {
		case line <- struct{}{}:
			release = func() { <-line; before() }
		case <-ctx.Done():
			before()
			return nil, ctx.Err()
		case <-late:
			before()
			return nil, &ThrottledError{RetryAfter: 5 * time.Second, Counted: ByServer}
		}
	}
	return release, nil
}

func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	release, err := h.acquire(ctx, true)
	if err != nil {
		return "", err
	}
	defer release()
	hash, err := h.create(password)
	if err != nil {
		return "", fmt.Errorf("users: hash password: %w", err)
	}
	return hash, nil
}

// create and check require a slot. It is released when their memory has been collected.
func (h *hasher) create(password string) (string, error) {
	defer h.collect(h.params)
	return argon2id.CreateHash(password, h.params)
}

func (h *hasher) check(password, hash string) (ok bool, used *argon2id.Params, err error) {
	defer func() { h.collect(used) }()
	return argon2id.CheckHash(password, hash)
}

func (h *hasher) collect(used *argon2id.Params) {
	if used != nil { // nil if nothing was hashed
		h.leftover.add(uint64(used.Memory)<<10, func() int { return len(h.slots) - 1 })
	}
}

// matches compares in constant time. stale reports whether the hash was made with parameters other
// than the configured ones. An empty hash takes the same time and never matches.
func (h *hasher) matches(ctx context.Context, password, hash string, known bool) (ok, stale bool, err error) {
	ctx, end := span.Begin(ctx, "check password") // includes the wait for a slot
	defer func() { end(err) }()
	release, err := h.acquire(ctx, known)
	if err != nil {
		return false, false, err
	}
	defer release()
	if hash == "" || len(password) > maxPassword {
		_, _, err := h.check("", h.decoy)
		return false, false, err
	}
	ok, used, err := h.check(password, hash)
	if err != nil {
		return false, false, fmt.Errorf("users: stored password hash: %w", err)
	}
	return ok, *used != *h.params, nil
}
