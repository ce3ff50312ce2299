package auditlog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// seal is the state of the log, encrypted with the master key in one row of the database. An
// attacker with only the database can delete the row or restore an older one, but not create one
// (EN-09).
type seal struct {
	Key    []byte `json:"key"`    // MAC key
	Signer []byte `json:"signer"` // SHA-256 of the public key that signs the log
	// Upgraded is when this version took over a log without MACs, or zero.
	Upgraded time.Time `json:"upgraded,omitzero"`
	Refused  string    `json:"refused,omitempty"` // why the log could not be taken over
	Signed   extent    `json:"signed"`            // the signed part of the log
}

// unsealed reports whether entries without a MAC are accepted, because replicas of the previous
// version may still write during an upgrade.
func (s seal) unsealed(x extent) bool {
	return !s.Upgraded.IsZero() && x.At.Sub(s.Upgraded) < mixedTime
}

// custody reads and replaces the seal.
type custody struct {
	store  Store
	ring   *secrets.Ring
	signer []byte // SHA-256 of the public key
}

func (c *custody) open(row []byte) (s seal, err error) {
	plain, err := c.ring.Open(keys.AuditSealName, row, nil)
	if err != nil {
		return s, errors.New("the seal of the audit log cannot be opened: add the master key that sealed it to the old ones")
	}
	if err := json.Unmarshal(plain, &s); err != nil || len(s.Key) != sha256.Size {
		return s, errors.New("the seal of the audit log is damaged")
	}
	return s, nil
}

func (c *custody) close(s seal) []byte {
	plain, err := json.Marshal(s)
	if err != nil {
		panic("auditlog: " + err.Error()) // a seal always encodes
	}
	return c.ring.Seal(keys.AuditSealName, plain, nil)
}

// read returns the seal and its row, or storage.ErrNotFound.
func (c *custody) read(ctx context.Context) (s seal, row []byte, err error) {
	row, err = c.store.SharedKey(ctx, keys.AuditSealName, nil)
	if err != nil {
		return s, nil, err
	}
	if row == nil {
		return s, nil, fmt.Errorf("the seal of the audit log: %w", storage.ErrNotFound)
	}
	s, err = c.open(row)
	return s, row, err
}

// begin creates the seal if it is missing. If replicas start together, one of them creates it.
func (c *custody) begin(ctx context.Context, key string, now time.Time) error {
	_, _, err := c.read(ctx)
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	made := seal{Key: secrets.Bytes(sha256.Size), Signer: c.signer}
	if err := c.takeOn(ctx, &made, key, now); err != nil {
		return err
	}
	_, err = c.store.SharedKey(ctx, keys.AuditSealName, c.close(made))
	return err
}

// takeOn decides where the checks begin: for an empty log at 0, for a log by a version without MACs
// after its newest checkpoint. Otherwise the seal was deleted, and the log is refused.
func (c *custody) takeOn(ctx context.Context, s *seal, key string, now time.Time) error {
	last, err := c.store.LastCheckpoint(ctx)
	missing := errors.Is(err, storage.ErrNotFound)
	if err != nil && !missing {
		return err
	}
	head, err := c.store.AuditHead(ctx, "")
	if err != nil {
		return err
	}
	if missing && head.Size == 0 {
		return nil
	}
	if missing {
		s.Refused = "it has entries, and neither a seal nor a checkpoint"
		return nil
	}
	why, err := c.upgrade(ctx, s, last, key)
	if err != nil {
		return err
	}
	s.Upgraded, s.Refused = now.UTC().Truncate(time.Millisecond), why
	return nil
}

// upgrade takes over a log without MACs at its newest checkpoint, or returns why it cannot.
func (c *custody) upgrade(
	ctx context.Context, s *seal, last storage.AuditCheckpoint, key string,
) (why string, err error) {
	signed, err := verify.OpenCheckpoint(last.Signed, key)
	if err != nil || signed.Size == 0 {
		return "its seal is missing, and its newest checkpoint was not signed by its key", nil
	}
	x := extent{Size: signed.Size, SealedFrom: signed.Size}
	x.Spine, err = readSpine(ctx, c.store, x.Size)
	if err != nil && !errors.Is(err, errTiles) {
		return "", err
	}
	if err != nil || x.root() != signed.Root {
		return "its seal is missing, and it is not what its newest checkpoint has signed", nil
	}
	found, err := c.store.AuditEntries(ctx, storage.AuditQuery{From: x.Size - 1, Below: x.Size, Limit: 1})
	if err != nil {
		return "", err
	}
	read := readStored(ctx, c.store)
	proof, err := tlog.ProveRecord(x.Size, x.Size-1, read)
	switch {
	case read.failed != nil:
		return "", read.failed
	case err != nil, len(found) != 1,
		tlog.CheckRecord(proof, x.Size, signed.Root, x.Size-1, tlog.RecordHash(found[0].Leaf)) != nil:
		return "its seal is missing, and the last entry that is signed is not what was signed", nil
	}
	if _, mac := verify.CutMAC(found[0].Leaf); mac != "" {
		return "its seal is missing, and it had one: the last entry that is signed has a MAC", nil
	}
	s.Signed = x
	return "", nil
}

// sealTries limits the attempts to update the seal while other replicas sign.
const sealTries = 16

// advance records the signed part of the log, unless another replica has signed more.
func (c *custody) advance(ctx context.Context, x extent) error {
	for range sealTries {
		s, row, err := c.read(ctx)
		if err != nil || s.Signed.Size >= x.Size {
			return err
		}
		s.Signed = x
		err = c.store.ReplaceSharedKey(ctx, keys.AuditSealName, row, c.close(s))
		if !errors.Is(err, storage.ErrSpent) {
			return err
		}
	}
	return errors.New("the seal of the audit log is changed by others all the time")
}
