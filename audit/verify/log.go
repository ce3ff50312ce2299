package verify

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Wrong reports a fault in a log, and the entries that contain it.
type Wrong struct {
	First, Last int64 // the faulty entries, both inclusive
	Why         string
}

func (w *Wrong) Error() string {
	if w.First == w.Last {
		return fmt.Sprintf("entry %d: %s", w.First, w.Why)
	}
	return fmt.Sprintf("entries %d to %d: %s", w.First, w.Last, w.Why)
}

// Log verifies a whole log. It receives the checkpoints first, and then the entries in order.
type Log struct {
	key         string
	checkpoints []Checkpoint // not reached yet; sorted by size from the first entry on
	right       int64        // entries with lower indexes are confirmed by a checkpoint
	size        int64
	removed     int64  // entries with lower indexes are missing
	removable   int64  // entries with lower indexes may be missing
	spine       []Hash // roots of the complete subtrees, from the left
}

// NewLog returns a Log that verifies with a key of the form name+hash+key.
func NewLog(key string) *Log { return &Log{key: key} }

// Key returns the key given to NewLog.
func (l *Log) Key() string { return l.key }

// Checkpoint adds a signed checkpoint that the log must match. It ignores checkpoints of size 0.
func (l *Log) Checkpoint(signed []byte) error {
	c, err := OpenCheckpoint(signed, l.key)
	if err != nil {
		return err
	}
	if l.size > 0 {
		return errors.New("verify: checkpoints come before entries")
	}
	if c.Size > 0 {
		l.checkpoints = append(l.checkpoints, c)
	}
	return nil
}

// Entry adds the next entry. kept is the stored hash of the entry, or the zero Hash if unknown.
func (l *Log) Entry(index int64, leaf []byte, kept Hash) error {
	if index != l.size {
		return &Wrong{l.size, l.size, "it is missing"}
	}
	h := tlog.RecordHash(leaf)
	if kept != (Hash{}) && kept != h {
		return &Wrong{index, index, "it is not what it was when it was written: changed, or another one in its place"}
	}
	e, err := ParseEntry(leaf)
	if err == nil && e.Event == RemovedEvent {
		var below int64
		below, err = removal(e, index, l.key)
		l.removable = max(l.removable, below)
	}
	if err != nil {
		return &Wrong{index, index, err.Error()}
	}
	return l.add(h)
}

// Removed adds the hash of an entry whose content was removed. A later entry must announce the
// removal (see RemovedEvent).
func (l *Log) Removed(index int64, h Hash) error {
	if index != l.size {
		return &Wrong{l.size, l.size, "its hash is missing"}
	}
	l.removed = index + 1
	return l.add(h)
}

func (l *Log) add(h Hash) error {
	if l.size == 0 {
		slices.SortFunc(l.checkpoints, func(a, b Checkpoint) int { return int(a.Size - b.Size) })
	}
	// Two complete subtrees of equal size merge into one of twice the size, like a binary carry.
	for n := l.size; n&1 == 1; n >>= 1 {
		left := l.spine[len(l.spine)-1]
		l.spine, h = l.spine[:len(l.spine)-1], tlog.NodeHash(left, h)
	}
	l.spine = append(l.spine, h)
	l.size++
	for len(l.checkpoints) > 0 && l.checkpoints[0].Size == l.size {
		if l.checkpoints[0].Root != l.Root() {
			return &Wrong{l.right, l.size - 1,
				fmt.Sprintf("they are not what the checkpoint of %d entries has signed", l.size)}
		}
		l.checkpoints, l.right = l.checkpoints[1:], l.size
	}
	return nil
}

// Size returns the number of entries added.
func (l *Log) Size() int64 { return l.size }

// Confirmed returns how many entries the checkpoints confirm.
func (l *Log) Confirmed() int64 { return l.right }

// Root returns the root of the tree of the entries added so far.
func (l *Log) Root() Hash {
	if l.size == 0 {
		return sha256.Sum256(nil) // RFC 9162 §2.1.1
	}
	root := l.spine[len(l.spine)-1]
	for i := len(l.spine) - 2; i >= 0; i-- {
		root = tlog.NodeHash(l.spine[i], root)
	}
	return root
}

// Done checks that the log reaches every checkpoint and announces all removals.
func (l *Log) Done() error {
	if len(l.checkpoints) > 0 {
		last := l.checkpoints[len(l.checkpoints)-1].Size
		return &Wrong{l.size, last - 1, fmt.Sprintf("they are missing: a checkpoint has signed %d entries", last)}
	}
	if l.removed > l.removable {
		return &Wrong{l.removable, l.removed - 1, "they are removed, and no entry says that they were to be"}
	}
	return nil
}

// Line is a line of an exported log: first the checkpoints, then the entries. Removed entries have
// a hash instead of a leaf.
type Line struct {
	Checkpoint string `json:"checkpoint,omitempty"`
	Index      int64  `json:"index"`
	Leaf       string `json:"leaf,omitempty"`
	Hash       *Hash  `json:"hash,omitempty"`
	// Unproven says why the server could not prove the entry when it wrote the line. Log ignores
	// it.
	Unproven string `json:"unproven,omitempty"`
}

// MarshalJSON encodes a checkpoint without an index.
func (l Line) MarshalJSON() ([]byte, error) {
	if l.Checkpoint != "" {
		return json.Marshal(map[string]string{"checkpoint": l.Checkpoint})
	}
	type line Line
	return json.Marshal(line(l))
}

// Read reads a log in the format of "audit export", and reports the first fault.
func (l *Log) Read(r io.Reader) error {
	lines := json.NewDecoder(r)
	for {
		var line Line
		err := lines.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return l.Done()
		case err != nil:
			return fmt.Errorf("verify: the log cannot be read after %d entries: %w", l.size, err)
		case line.Checkpoint != "":
			err = l.Checkpoint([]byte(line.Checkpoint))
		case line.Hash != nil && line.Leaf == "":
			err = l.Removed(line.Index, *line.Hash)
		default:
			err = l.Entry(line.Index, []byte(line.Leaf), Hash{})
		}
		if err != nil {
			return err
		}
	}
}
