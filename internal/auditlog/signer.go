package auditlog

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// ErrInconsistent means that the log in the store is not the log that was signed before.
var ErrInconsistent = errors.New("the audit log differs from the log that was signed: run: mcp-authd audit verify")

// Signer checks the MACs of entries, and signs checkpoints.
type Signer struct {
	store   Store
	key     keys.AuditKey
	text    string // public key in the form name+hash+key
	hash    uint32
	custody *custody
	last    verify.Checkpoint // last one seen by this process; the store may have been restored since
}

// Open returns the signer of the log. Given an origin, it creates a missing key and seal. Without
// an origin, it returns storage.ErrNotFound if the key is missing.
func Open(ctx context.Context, store Store, masters [][]byte, origin string, now time.Time) (*Signer, error) {
	key, err := keys.OpenAuditKey(ctx, store, masters, origin)
	if err != nil {
		return nil, err
	}
	ring, err := secrets.NewRing(masters...)
	if err != nil {
		return nil, err
	}
	public := key.Private.Public().(ed25519.PublicKey)
	text, err := note.NewEd25519VerifierKey(key.Origin, public)
	if err != nil {
		return nil, err
	}
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("audit log: the name %q cannot be that of a key: %w", key.Origin, err)
	}
	id := sha256.Sum256(public)
	s := &Signer{
		store: store, key: key, text: text, hash: v.KeyHash(),
		custody: &custody{store: store, ring: ring, signer: id[:]},
	}
	if origin != "" {
		return s, s.custody.begin(ctx, text, now)
	}
	return s, nil
}

// MAC returns the MAC of the log, or storage.ErrNotFound if the log has no seal yet.
func (s *Signer) MAC(ctx context.Context) (*MAC, error) {
	kept, _, err := s.custody.read(ctx)
	return &MAC{kept.Key}, err
}

// MACOf returns a function for Options.MAC that opens the log as Open does.
func MACOf(
	store Store, masters [][]byte, origin string, now func() time.Time,
) func(context.Context) (*MAC, error) {
	return func(ctx context.Context) (*MAC, error) {
		s, err := Open(ctx, store, masters, origin, now())
		if err != nil {
			return nil, err
		}
		return s.MAC(ctx)
	}
}

// Key returns the public key in the form name+hash+key.
func (s *Signer) Key() string { return s.text }

// Name implements note.Signer.
func (s *Signer) Name() string { return s.key.Origin }

// KeyHash implements note.Signer.
func (s *Signer) KeyHash() uint32 { return s.hash }

// Sign implements note.Signer.
func (s *Signer) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.key.Private, text), nil }

// Removal returns a signed statement that the entries below an index are removed.
func (s *Signer) Removal(below int64) (string, error) {
	signed, err := note.Sign(&note.Note{Text: verify.RemovalText(s.key.Origin, below)}, s)
	return string(signed), err
}

// Checkpoint returns a checkpoint of all current entries: the newest one, or a new one that it
// stores. It signs only what extends the signed log and comes from writers of this log. Otherwise
// it returns an error that wraps ErrInconsistent.
func (s *Signer) Checkpoint(ctx context.Context, now time.Time) (storage.AuditCheckpoint, error) {
	for {
		f, err := s.look(ctx, now, signAtOnce)
		if err != nil {
			return storage.AuditCheckpoint{}, err
		}
		out := f.kept
		if f.kept.Size == 0 || f.checked.Size > f.kept.Size {
			if out, err = s.sign(ctx, f.checked, now); err != nil {
				return storage.AuditCheckpoint{}, err
			}
		}
		if f.checked.Size > f.signed {
			if err := s.custody.advance(ctx, f.checked); err != nil {
				return storage.AuditCheckpoint{}, err
			}
		}
		if f.checked.Size >= f.size {
			return out, nil
		}
	}
}

// signAtOnce limits the new entries per checkpoint, so that a timeout loses only the last part.
const signAtOnce = 64 * page

const lookAtOnce = 8 * page

// Look makes the checks of Checkpoint for up to lookAtOnce new entries, and signs nothing.
func (s *Signer) Look(ctx context.Context, now time.Time) error {
	_, err := s.look(ctx, now, lookAtOnce)
	return err
}

// looked is the state of the log.
type looked struct {
	kept    storage.AuditCheckpoint // the newest checkpoint, or one of size 0
	size    int64                   // of the log
	signed  int64                   // size in the seal
	checked extent
}

// look compares the log with the seal, the newest checkpoint and the last one seen by this process,
// and checks up to limit unsigned entries. It reads the seal, the checkpoint and the head in this
// order, so that a replica that signs meanwhile causes no false alarm.
func (s *Signer) look(ctx context.Context, now time.Time, limit int64) (f looked, err error) {
	kept, err := s.seal(ctx)
	if err != nil {
		return f, err
	}
	newest, err := s.newest(ctx)
	if err != nil {
		return f, err
	}
	head, err := s.store.AuditHead(ctx, "")
	if err != nil {
		return f, err
	}
	f.kept, f.size, f.signed = newest.stored, head.Size, kept.Signed.Size
	if err := s.fits(kept, newest.Checkpoint, head); err != nil {
		return f, err
	}
	agrees := func(x extent) error {
		if newest.Size > 0 && x.Size == newest.Size && x.root() != newest.Root {
			return inconsistent("the newest checkpoint has not signed the entries that are there")
		}
		return nil
	}
	if err := agrees(kept.Signed); err != nil {
		return f, err
	}
	from := kept.Signed.clone(now)
	// Always include the newest checkpoint: a replica may have signed more than the seal says.
	to := min(head.Size, max(from.Size+limit, newest.Size))
	f.checked, err = from.walk(ctx, s.store, &MAC{kept.Key}, to, kept.unsealed(from), agrees)
	var wrong *verify.Wrong
	if errors.As(err, &wrong) {
		err = errors.Join(ErrInconsistent, err)
	}
	f.checked.forget()
	return f, err
}

// seal returns the seal of the log, storage.ErrNotFound if there never was one, or ErrInconsistent
// if it was deleted.
func (s *Signer) seal(ctx context.Context) (seal, error) {
	kept, _, err := s.custody.read(ctx)
	if !errors.Is(err, storage.ErrNotFound) {
		return kept, err
	}
	last, failed := s.store.AuditEntries(ctx, storage.AuditQuery{Last: true, Limit: 1})
	if failed != nil {
		return kept, failed
	}
	if len(last) > 0 {
		if _, mac := verify.CutMAC(last[0].Leaf); mac != "" {
			return kept, inconsistent("its seal is missing")
		}
	}
	return kept, err
}

// signedBefore is a verified checkpoint and its stored form.
type signedBefore struct {
	verify.Checkpoint
	stored storage.AuditCheckpoint
}

// newest returns the newest checkpoint, or one of size 0. It must extend the last one seen by this
// process.
func (s *Signer) newest(ctx context.Context) (out signedBefore, err error) {
	out.stored, err = s.store.LastCheckpoint(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return signedBefore{}, nil
	}
	if err != nil {
		return out, err
	}
	if out.Checkpoint, err = verify.OpenCheckpoint(out.stored.Signed, s.text); err != nil {
		return out, errors.Join(ErrInconsistent, err)
	}
	if out.Size != out.stored.Size {
		return out, inconsistent("a checkpoint is kept as one of another size")
	}
	if err := s.goesOn(ctx, out.Checkpoint); err != nil {
		return out, err
	}
	s.last = out.Checkpoint
	return out, nil
}

// fits compares the sizes in the seal, the newest checkpoint and the store.
func (s *Signer) fits(kept seal, newest verify.Checkpoint, head storage.AuditHead) error {
	switch {
	case kept.Refused != "":
		return inconsistent(kept.Refused)
	case !bytes.Equal(kept.Signer, s.custody.signer):
		return inconsistent("its key is another one than the seal was made for")
	case newest.Size < kept.Signed.Size:
		return inconsistent(label.Count(kept.Signed.Size, "entry was", "entries were") +
			" signed, and the checkpoint that says so is missing")
	case head.Size < kept.Signed.Size, head.Size < newest.Size:
		return inconsistent(fmt.Sprintf("%s signed, and it has %d",
			label.Count(max(kept.Signed.Size, newest.Size), "entry was", "entries were"), head.Size))
	}
	return nil
}

func inconsistent(why string) error { return fmt.Errorf("%w: %s", ErrInconsistent, why) }

// goesOn returns an error unless the checkpoint next extends the last one seen by this process.
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

// sign stores a checkpoint of the checked entries, unless another replica did. It remembers only
// stored ones: otherwise the store would later seem restored from a backup.
func (s *Signer) sign(ctx context.Context, x extent, now time.Time) (storage.AuditCheckpoint, error) {
	c := verify.Checkpoint{Origin: s.key.Origin, Size: x.Size, Root: x.root()}
	if err := s.holds(ctx, c); err != nil {
		return storage.AuditCheckpoint{}, err
	}
	signed, err := note.Sign(&note.Note{Text: c.Text()}, s)
	if err != nil {
		return storage.AuditCheckpoint{}, err
	}
	out := storage.AuditCheckpoint{Size: x.Size, At: now.UTC().Truncate(time.Millisecond), Signed: signed}
	if x.Size == 0 {
		return out, nil
	}
	if err := s.store.PutCheckpoint(ctx, out); err != nil && !errors.Is(err, storage.ErrExists) {
		return storage.AuditCheckpoint{}, err
	}
	s.last = c
	return out, nil
}

// holds returns an error unless the stored hashes, which proofs are made from, have the root of c
// and extend the last checkpoint.
func (s *Signer) holds(ctx context.Context, c verify.Checkpoint) error {
	root, err := tlog.TreeHash(c.Size, readStored(ctx, s.store))
	switch {
	case errors.Is(err, errTiles):
		return errors.Join(ErrInconsistent, err)
	case err != nil:
		return err
	case root != c.Root:
		return inconsistent("the hashes that are kept are not those of the entries")
	}
	return s.goesOn(ctx, c)
}
