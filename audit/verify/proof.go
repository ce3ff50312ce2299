package verify

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Proof is entries of a log with what shows that they are in it: what "audit prove --json" prints.
type Proof struct {
	Log        string   `json:"log"`        // the origin of the log
	Checkpoint string   `json:"checkpoint"` // signed; see OpenCheckpoint
	Entries    []Proved `json:"entries"`    // by index
	// Removed says that the approval of the grant was in the log, and has gone with other old entries. It is
	// what the server says, and not proved.
	Removed bool `json:"removed,omitempty"`
}

// Proved is one entry with its inclusion proof.
type Proved struct {
	Index int64  `json:"index"`
	Leaf  string `json:"leaf"`  // in canonical JSON; see Entry.Leaf
	Proof []Hash `json:"proof"` // RFC 9162 §2.1.3: the hashes beside the way to the root, from below
}

// Open checks the checkpoint by the key of the log, which the caller has from elsewhere than from
// the proof, and each entry by the checkpoint, and returns what the entries say.
func (p Proof) Open(key string) ([]Entry, error) {
	c, err := OpenCheckpoint([]byte(p.Checkpoint), key)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(p.Entries))
	last := int64(-1)
	for _, e := range p.Entries {
		entry, err := ParseEntry([]byte(e.Leaf))
		if err != nil {
			return nil, err
		}
		if e.Index <= last || e.Index >= c.Size {
			return nil, fmt.Errorf("verify: entry %d is out of order, or not below %d", e.Index, c.Size)
		}
		last = e.Index
		if err := tlog.CheckRecord(e.Proof, c.Size, c.Root, e.Index, tlog.RecordHash([]byte(e.Leaf))); err != nil {
			return nil, fmt.Errorf("verify: entry %d is not in the log of the checkpoint", e.Index)
		}
		out = append(out, entry)
	}
	if len(out) == 0 {
		return nil, errors.New("verify: the proof has no entries")
	}
	return out, nil
}
