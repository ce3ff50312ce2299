package keys

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	auditKeyName = "audit log"
	auditKeyWhat = "the key of the audit log"

	// AuditSealName is the name of the shared key that protects the audit log's MAC key and signing
	// position.
	AuditSealName = "audit log seal"
	auditSealWhat = "the seal of the audit log"
)

// AuditKey signs checkpoints of the audit log. It is created with the log, sealed with the master
// key, and survives a change of the master key.
type AuditKey struct {
	Origin  string // of the log; does not change with the issuer
	Private ed25519.PrivateKey
}

// OpenAuditKey returns the key of the audit log. If it does not exist and origin is set, one of the
// replicas that start together creates it. If origin is empty, it returns storage.ErrNotFound.
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
