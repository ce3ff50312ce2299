package auditlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// A spool is a file that keeps the entries of one writer while they wait in memory, so that they outlive
// the process. Each entry is one line,
//
//	NUMBER CRC LEAF
//
// with its number among all entries of the writer and the CRC-32C of number and leaf. The file has the
// name of the writer, which holds a lock on it while it lives.
type spool struct {
	dir    string   // "": no file
	suffix string   // of the file's name
	path   string   // of the file
	file   *os.File // nil: not begun
	size   int64
	tidyAt int64  // the size at which entries that are in the log are thrown out
	line   []byte // the last one that was written; its room is used again
}

const (
	spoolSuffix = ".spool"
	sumsSuffix  = ".sums"   // see sums
	halfMade    = ".spool-" // before the name of a file that is not whole yet
	// spoolTidy is how much may be in a file of what is in the log already.
	spoolTidy = 1 << 20
	// maxSpool bounds what is read of a file in bytes: maxWaiting entries of the longest kind that there
	// are, or some more of common ones.
	maxSpool = 256 << 20
	// spoolAge is when a file is too old to be read: the store may have forgotten how much of it the log
	// has.
	spoolAge = 390 * 24 * time.Hour
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendSpoolLine appends an entry as the file has it.
func appendSpoolLine(b []byte, number int64, leaf []byte) []byte {
	begin := len(b)
	b = append(strconv.AppendInt(b, number, 10), ' ')
	sum := crc32.Update(crc32.Checksum(b[begin:], castagnoli), castagnoli, leaf)
	b = hex.AppendEncode(b, binary.BigEndian.AppendUint32(make([]byte, 0, crc32.Size), sum))
	return append(append(append(b, ' '), leaf...), '\n')
}

// cutSpoolLine splits a line without its end. The highest number is refused: it has no successor to note as
// the writer's progress, so its file would be taken again and again.
func cutSpoolLine(line []byte) (number int64, leaf []byte, err error) {
	digits, rest, _ := bytes.Cut(line, []byte(" "))
	_, leaf, _ = bytes.Cut(rest, []byte(" "))
	number, err = strconv.ParseInt(string(digits), 10, 64)
	if err != nil || number < 0 || number == math.MaxInt64 ||
		!bytes.Equal(append(bytes.Clone(line), '\n'), appendSpoolLine(nil, number, leaf)) {
		return 0, nil, errors.New("auditlog: the line was not written as a whole")
	}
	return number, leaf, nil
}

// parseSpoolLine reads a line without its end.
func parseSpoolLine(line []byte) (numbered, error) {
	number, leaf, err := cutSpoolLine(line)
	if err != nil {
		return numbered{}, err
	}
	e, err := verify.ParseEntry(leaf)
	if err != nil {
		return numbered{}, err
	}
	return numbered{number, record(e)}, nil
}

// id returns the writer that the file is named for.
func (s *spool) id() string { return strings.TrimSuffix(filepath.Base(s.path), s.suffix) }

// begin makes the file of a writer, if there is none yet.
func (s *spool) begin(id string) error {
	if s.dir == "" || s.file != nil {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return s.renew(id, 0, nil)
}

// add adds an entry by one call of the system. When the disk has no room, what came to be of it goes.
func (s *spool) add(number int64, leaf []byte) error {
	s.line = appendSpoolLine(s.line[:0], number, leaf)
	if _, err := s.file.WriteAt(s.line, s.size); err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(s.line))
	return nil
}

// tidy throws out what is in the log, when nothing waits or it has become much.
func (s *spool) tidy(id string, base int64, waiting []numbered) error {
	switch {
	case s.file == nil || s.size == 0:
		return nil
	case len(waiting) == 0:
		s.size = 0
		return s.file.Truncate(0)
	case s.size < s.tidyAt:
		return nil
	}
	return s.renew(id, base, waiting)
}

// renew writes what waits into another file, which is locked, and takes the place of the one before when
// it is whole.
func (s *spool) renew(id string, base int64, waiting []numbered) error {
	var all []byte
	for _, e := range waiting {
		all = appendSpoolLine(all, e.number-base, e.Leaf)
	}
	f, err := os.CreateTemp(s.dir, halfMade+"*")
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, id+s.suffix)
	_, err = f.Write(all)
	if err == nil {
		err = lockFile(f)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if s.path != path {
		err = s.remove() // of the writer under the id before
	} else if s.file != nil {
		err = s.file.Close()
	}
	s.path, s.file, s.size = path, f, int64(len(all))
	s.tidyAt = 2*s.size + spoolTidy
	return err
}

// end removes the file when nothing is in it. What is in it waits for the next start: nothing is written
// into it any more.
func (s *spool) end() error {
	if s.size == 0 {
		return s.remove()
	}
	s.dir = ""
	return s.leave()
}

// leave unlocks the file, for whoever takes what is left.
func (s *spool) leave() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// remove removes the file while it is locked.
func (s *spool) remove() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(os.Remove(s.path), s.file.Close())
	s.file = nil
	return err
}
