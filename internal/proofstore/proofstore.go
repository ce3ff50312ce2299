// Package proofstore remembers used proofs of possession (RFC 9449) in the store, where all replicas
// see them. A program that is alone has them in memory, which costs nothing: package dpop.
package proofstore

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Proofs remembers the proofs of one purpose. It satisfies authserver.ProofReplays and
// mcpresource.Replays.
type Proofs struct {
	store   storage.Proofs
	purpose string
}

// New returns the proofs of a purpose: those at the token endpoint and those at MCP servers are two,
// so that a client that counts its requests for each of them may use a jti for both.
func New(store storage.Proofs, purpose string) *Proofs { return &Proofs{store, "dpop " + purpose} }

// Use records id until then, and reports whether it was new; of two concurrent calls, one gets true.
func (p *Proofs) Use(ctx context.Context, id string, until time.Time) (first bool, err error) {
	// A proof is good until then, and then; a record ends at its end.
	err = p.store.SpendProof(ctx, p.purpose, base64.RawURLEncoding.EncodeToString([]byte(id)),
		until.Add(time.Millisecond))
	if errors.Is(err, storage.ErrSpent) {
		return false, nil
	}
	return err == nil, err
}
