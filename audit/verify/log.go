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

// Wrong is what is wrong with a log, and where.
type Wrong struct {
	First, Last int64 // the entries in which the fault is
	Why         string
}

func (w *Wrong) Error() string {
	if w.First == w.Last {
		return fmt.Sprintf("entry %d: %s", w.First, w.Why)
	}
	return fmt.Sprintf("entries %d to %d: %s", w.First, w.Last, w.Why)
}

// Log checks a whole log as its entries are given to it, in order. Give it the checkpoints first.
type Log struct {
	key         string
	checkpoints []Checkpoint // by size, those that are still ahead
	right       int64        // entries before this one are confirmed by a checkpoint
	size        int64
	removed     int64  // the entries before this one are missing
	removable   int64  // those before this one may be
	spine       []Hash // roots of the complete subtrees, from the left
}

// NewLog returns a Log of the key.
func NewLog(key string) *Log { return &Log{key: key} }

// Key is the key of the log.
func (l *Log) Key() string { return l.key }

// Checkpoint has the log agree with a signed checkpoint. Those of the size 0 say nothing.
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

// Entry takes the next entry. kept is the hash that was kept of it, the zero Hash for none.
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

// Removed takes the hash of an entry that is not kept any more. An entry after it has to say that it was
// to go (see RemovedEvent).
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
	// Complete subtrees of one size become one of twice the size, as when counting in binary.
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

// Size is how many entries were taken.
func (l *Log) Size() int64 { return l.size }

// Confirmed is how many of them a checkpoint confirms.
func (l *Log) Confirmed() int64 { return l.right }

// Root is the root of the tree of the entries so far.
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

// Done says what is missing at the end.
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

// Line is one line of an exported log: JSON lines, the checkpoints first and then the entries. An entry
// that is not kept any more has a hash instead of a leaf.
type Line struct {
	Checkpoint string `json:"checkpoint,omitempty"`
	Index      int64  `json:"index"`
	Leaf       string `json:"leaf,omitempty"`
	Hash       *Hash  `json:"hash,omitempty"`
	// Unproven is why the server could not prove the entry when it wrote the line, empty when it could. Log does
	// not believe it: it finds out by itself what the checkpoints confirm.
	Unproven string `json:"unproven,omitempty"`
}

// MarshalJSON writes a checkpoint without an index.
func (l Line) MarshalJSON() ([]byte, error) {
	if l.Checkpoint != "" {
		return json.Marshal(map[string]string{"checkpoint": l.Checkpoint})
	}
	type line Line
	return json.Marshal(line(l))
}

// Read takes a log as "audit export" writes it, and reports what is wrong with it.
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
