package auditlog

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Standing tells why an entry is not proven. It does not read the tree, so it misses an entry that
// was moved with its MAC; Verify finds that.
type Standing struct {
	seal    seal
	refused bool
}

// The reasons why an entry is not proven.
const (
	UnprovenUnsigned = "it is not signed yet"
	UnprovenNoMAC    = "it has no MAC of a writer of this log"
	UnprovenOld      = "a version that added no MAC wrote it: audit verify compares it with what was signed"
	UnprovenChanged  = "it is not what its writer wrote: its MAC does not match"
	UnprovenLog      = "the log is not the one that was signed: run: mcp-authd audit verify"
	UnprovenUnopened = "nothing was signed yet"
)

// Standing reads the signed state of the log.
func (s *Signer) Standing(ctx context.Context) (Standing, error) {
	kept, err := s.seal(ctx)
	if errors.Is(err, ErrInconsistent) {
		return Standing{refused: true}, nil
	}
	if err != nil {
		return Standing{}, err
	}
	newest, err := s.newest(ctx)
	if err == nil {
		err = s.fits(kept, newest.Checkpoint, storage.AuditHead{Size: max(newest.Size, kept.Signed.Size)})
	}
	if err == nil && newest.Size == kept.Signed.Size && newest.Size > 0 && newest.Root != kept.Signed.root() {
		err = ErrInconsistent
	}
	if err != nil && !errors.Is(err, ErrInconsistent) {
		return Standing{}, err
	}
	return Standing{kept, err != nil}, nil
}

// Unproven returns the reason why an entry is not proven, or "" if it is.
func (s Standing) Unproven(e storage.AuditEntry) string {
	switch {
	case s.seal.Key == nil && s.refused:
		return UnprovenLog
	case s.seal.Key == nil:
		return UnprovenUnopened
	}
	_, err := (&MAC{s.seal.Key}).Check(e.Leaf)
	switch signed := s.seal.Signed; {
	case errors.Is(err, errNoMAC) && e.Index < signed.SealedFrom:
		return UnprovenOld
	case errors.Is(err, errNoMAC):
		return UnprovenNoMAC
	case err != nil:
		return UnprovenChanged
	case s.refused:
		return UnprovenLog
	case e.Index >= signed.Size:
		return UnprovenUnsigned
	}
	return ""
}

// Wrong reports whether a reason returned by Unproven means that the log was changed.
func Wrong(unproven string) bool {
	return unproven == UnprovenNoMAC || unproven == UnprovenChanged || unproven == UnprovenLog
}
