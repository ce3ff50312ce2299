package keys

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	auditKeyName = "audit log"
	auditKeyWhat = "the key of the audit log"

	// AuditSealName is the shared key under which the audit log keeps the key of its MACs and how far it was signed.
	AuditSealName = "audit log seal"
	auditSealWhat = "the seal of the audit log"
)

// AuditKey signs checkpoints of the audit log. It is as old as the log, and outlives a change of the
// master key, under which it is sealed.
type AuditKey struct {
	Origin  string // of the log; stays when the issuer changes
	Private ed25519.PrivateKey
}

// OpenAuditKey returns the key of the audit log. With an origin, one is made for it when there is none:
// of several replicas that start together one makes it. Without, storage.ErrNotFound.
func OpenAuditKey(
	ctx context.Context, store storage.SharedKeys, secretKeys [][]byte, origin string,
) (AuditKey, error) {
	ring, err := secrets.NewRing(secretKeys...)
	if err != nil {
		return AuditKey{}, err
	}
	var mine []byte
	if origin != "" {
		seed := make([]byte, ed25519.SeedSize)
		rand.Read(seed)
		mine = ring.Seal(auditKeyName, append(seed, origin...), nil)
	}
	sealed, err := store.SharedKey(ctx, auditKeyName, mine)
	if err != nil {
		return AuditKey{}, fmt.Errorf("keys: audit: %w", err)
	}
	if sealed == nil {
		return AuditKey{}, fmt.Errorf("keys: audit: %w", storage.ErrNotFound)
	}
	plain, err := ring.Open(auditKeyName, sealed, nil)
	if err != nil {
		return AuditKey{}, notOpened(auditKeyWhat)
	}
	if len(plain) <= ed25519.SeedSize {
		return AuditKey{}, errors.New(auditKeyWhat + " is damaged")
	}
	return AuditKey{
		Origin: string(plain[ed25519.SeedSize:]), Private: ed25519.NewKeyFromSeed(plain[:ed25519.SeedSize]),
	}, nil
}
