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

// A spool is a file that keeps the waiting entries of one writer if the process ends. Each entry is
// one line,
//
//	NUMBER CRC LEAF
//
// with its number among the entries of the writer, and the CRC-32C of number and leaf. The file
// is named after the writer, which locks it while running.
type spool struct {
	dir    string   // if empty, entries wait in memory only
	suffix string   // of the file name
	path   string   // of the file
	file   *os.File // nil until begun
	size   int64
	tidyAt int64  // size of the file that triggers a rewrite
	line   []byte // buffer for the next line
}

const (
	spoolSuffix = ".spool"
	sumsSuffix  = ".sums"   // see sums
	halfMade    = ".spool-" // prefix of unfinished files
	// spoolTidy is in bytes. A file is rewritten at twice its last rewritten size plus spoolTidy.
	spoolTidy = 1 << 20
	// maxSpool limits how much of a file is read, in bytes: maxWaiting entries of 4 KiB.
	maxSpool = 256 << 20
	// spoolAge is the maximum age of a file. For older ones, the store may not know how much is in
	// the log.
	spoolAge = 390 * 24 * time.Hour
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendSpoolLine(b []byte, number int64, leaf []byte) []byte {
	begin := len(b)
	b = append(strconv.AppendInt(b, number, 10), ' ')
	sum := crc32.Update(crc32.Checksum(b[begin:], castagnoli), castagnoli, leaf)
	b = hex.AppendEncode(b, binary.BigEndian.AppendUint32(make([]byte, 0, crc32.Size), sum))
	return append(append(append(b, ' '), leaf...), '\n')
}

// cutSpoolLine splits a line without its newline. It rejects the highest number, because the mark
// after it would overflow and the file be taken again and again.
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

// id returns the id of the writer, from the file name.
func (s *spool) id() string { return strings.TrimSuffix(filepath.Base(s.path), s.suffix) }

// begin creates the file of a writer, unless it exists or no directory is set.
func (s *spool) begin(id string) error {
	if s.dir == "" || s.file != nil {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return s.renew(id, 0, nil)
}

// add writes an entry with one system call. If the disk is full, it removes the partial line.
func (s *spool) add(number int64, leaf []byte) error {
	s.line = appendSpoolLine(s.line[:0], number, leaf)
	if _, err := s.file.WriteAt(s.line, s.size); err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(s.line))
	return nil
}

// tidy removes entries that are in the log, if none wait or the file is large.
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

// renew writes the waiting entries to a new, locked file, and then replaces the old file with it.
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
		err = s.remove() // of the writer's previous id
	} else if s.file != nil {
		err = s.file.Close()
	}
	s.path, s.file, s.size = path, f, int64(len(all))
	s.tidyAt = 2*s.size + spoolTidy
	return err
}

// end deletes an empty file. Otherwise it leaves the file for the next start, and disables the
// spool.
func (s *spool) end() error {
	if s.size == 0 {
		return s.remove()
	}
	s.dir = ""
	return s.leave()
}

// leave unlocks the file, so that another writer can take its entries.
func (s *spool) leave() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// remove deletes the file while it is locked.
func (s *spool) remove() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(os.Remove(s.path), s.file.Close())
	s.file = nil
	return err
}
