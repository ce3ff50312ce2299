package auditlog

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/keys"
	"github.com/mcp-authd/mcp-authd/storage"
)

// ErrInconsistent means that the log in the store does not hold what was signed before.
var ErrInconsistent = errors.New("the audit log is not the one that was signed before: run: mcp-authd audit verify")

// Signer signs checkpoints.
type Signer struct {
	store Store
	key   keys.AuditKey
	text  string // the key as verifiers take it
	hash  uint32
	last  verify.Checkpoint // that this process has seen in the store, which may have been put back since
}

// NewSigner returns the signer of a key.
func NewSigner(store Store, key keys.AuditKey) (*Signer, error) {
	text, err := note.NewEd25519VerifierKey(key.Origin, key.Private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("audit log: the name %q cannot be that of a key: %w", key.Origin, err)
	}
	return &Signer{store: store, key: key, text: text, hash: v.KeyHash()}, nil
}

// Key is the public key as verifiers take it: name+hash+key.
func (s *Signer) Key() string { return s.text }

// Name implements note.Signer.
func (s *Signer) Name() string { return s.key.Origin }

// KeyHash implements note.Signer.
func (s *Signer) KeyHash() uint32 { return s.hash }

// Sign implements note.Signer.
func (s *Signer) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.key.Private, text), nil }

// Removal signs that the entries below an index are removed.
func (s *Signer) Removal(below int64) (string, error) {
	signed, err := note.Sign(&note.Note{Text: verify.RemovalText(s.key.Origin, below)}, s)
	return string(signed), err
}

// Checkpoint returns a checkpoint of all entries that are in the log now: the last one, or a new one,
// which the store keeps. The key signs nothing that does not go on from what it has signed before. The last one is
// read before the end of the log: another replica may append and sign in between.
func (s *Signer) Checkpoint(ctx context.Context, now time.Time) (storage.AuditCheckpoint, error) {
	kept, missing := s.store.LastCheckpoint(ctx)
	if missing != nil && !errors.Is(missing, storage.ErrNotFound) {
		return storage.AuditCheckpoint{}, missing
	}
	head, err := s.store.AuditHead(ctx, "")
	if err != nil {
		return storage.AuditCheckpoint{}, err
	}
	if missing == nil {
		c, err := verify.OpenCheckpoint(kept.Signed, s.text)
		if err != nil {
			return storage.AuditCheckpoint{}, errors.Join(ErrInconsistent, err)
		}
		if err := s.goesOn(ctx, c); err != nil {
			return storage.AuditCheckpoint{}, err
		}
		s.last = c
	}
	if kept.Size > 0 && kept.Size == head.Size {
		return kept, nil
	}
	return s.sign(ctx, head.Size, now)
}

// goesOn returns an error unless the log holds the last checkpoint and a later one.
func (s *Signer) goesOn(ctx context.Context, next verify.Checkpoint) error {
	before := s.last
	if next.Size < before.Size {
		return ErrInconsistent
	}
	if before.Size > 0 && next.Size > 0 {
		read := readStored(ctx, s.store)
		proof, err := tlog.ProveTree(next.Size, before.Size, read)
		if err == nil {
			err = tlog.CheckTree(proof, next.Size, next.Root, before.Size, before.Root)
		}
		switch {
		case read.failed != nil:
			return read.failed
		case err != nil:
			return errors.Join(ErrInconsistent, err)
		}
	}
	return nil
}

// sign makes a checkpoint of a size. Another replica may have kept one of it first. One that the store has not taken
// goes nowhere, and is not the last one: the store would be taken for one that was put back.
func (s *Signer) sign(ctx context.Context, size int64, now time.Time) (storage.AuditCheckpoint, error) {
	c := verify.Checkpoint{Origin: s.key.Origin, Size: size}
	var err error
	if c.Root, err = tlog.TreeHash(size, readStored(ctx, s.store)); err != nil {
		return storage.AuditCheckpoint{}, err
	}
	if err := s.goesOn(ctx, c); err != nil {
		return storage.AuditCheckpoint{}, err
	}
	signed, err := note.Sign(&note.Note{Text: c.Text()}, s)
	if err != nil {
		return storage.AuditCheckpoint{}, err
	}
	out := storage.AuditCheckpoint{Size: size, At: now.UTC().Truncate(time.Millisecond), Signed: signed}
	if size == 0 {
		return out, nil
	}
	if err := s.store.PutCheckpoint(ctx, out); err != nil && !errors.Is(err, storage.ErrExists) {
		return storage.AuditCheckpoint{}, err
	}
	s.last = c
	return out, nil
}
