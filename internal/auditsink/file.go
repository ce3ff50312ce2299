package auditsink

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
)

// Rotation configures a file and its replacement.
type Rotation struct {
	Path string
	// MaxSize limits the file, in bytes. Every limits its period, aligned to midnight UTC or
	// dividing the day. 0 means no limit.
	MaxSize int64
	Every   time.Duration
	// Keep is the number of replaced files to keep; 0 for all.
	Keep int
}

// stamp is the suffix of a replaced file.
const stamp = "20060102T150405.000Z"

// file appends lines to a file. It opens the file for each batch, so that another program may move
// it.
type file struct {
	writer
	Rotation
	now func() time.Time
}

func newFile(w writer, r Rotation, now func() time.Time) *file { return &file{w, r, now} }

// Deliver implements Sink. When it returns, the lines are on disk. If they do not fit, it writes
// none of them.
func (f *file) Deliver(_ context.Context, batch []auditformat.Entry) error {
	lines := f.lines(batch)
	if err := f.rotate(int64(len(lines))); err != nil {
		return err
	}
	out, err := os.OpenFile(f.Path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(appendLines(out, lines), out.Close())
}

// appendLines writes lines at the end of a file. It overwrites a partial last line, left by a
// killed process.
func appendLines(out *os.File, lines []byte) error {
	end, err := lastLine(out)
	if err != nil {
		return err
	}
	if err := out.Truncate(end); err != nil {
		return err
	}
	if _, err = out.WriteAt(lines, end); err == nil {
		err = out.Sync()
	}
	if err != nil { // the disk is full: remove partial lines
		return errors.Join(err, out.Truncate(end))
	}
	return nil
}

// maxLine exceeds the length of any line.
const maxLine = 1 << 20

// lastLine returns the offset of the end of the last line.
func lastLine(in *os.File) (int64, error) {
	size, err := in.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return 0, err
	}
	from := max(size-maxLine, 0)
	tail := make([]byte, size-from)
	if _, err := in.ReadAt(tail, from); err != nil {
		return 0, err
	}
	end := bytes.LastIndexByte(tail, '\n')
	if end < 0 && from > 0 {
		return 0, fmt.Errorf("%s has no lines: it is another file", in.Name())
	}
	return from + int64(end) + 1, nil
}

// rotate moves the file if it would become too long, or if it belongs to another period.
func (f *file) rotate(more int64) error {
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s must be a file", f.Path)
	case info.Size() == 0:
		return nil
	}
	now := f.now().UTC()
	full := f.MaxSize > 0 && info.Size()+more > f.MaxSize
	old := f.Every > 0 && info.ModTime().UTC().Truncate(f.Every).Before(now.Truncate(f.Every))
	if !full && !old {
		return nil
	}
	to := f.Path + "." + now.Format(stamp)
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be replaced twice in a millisecond", f.Path)
	}
	if err := os.Rename(f.Path, to); err != nil {
		return err
	}
	return f.remove()
}

// remove deletes the oldest replaced files.
func (f *file) remove() error {
	if f.Keep == 0 {
		return nil
	}
	replaced, err := f.replaced()
	if err != nil {
		return err
	}
	for _, name := range replaced[:max(len(replaced)-f.Keep, 0)] {
		if err := os.Remove(filepath.Join(filepath.Dir(f.Path), name)); err != nil {
			return err
		}
	}
	return nil
}

// replaced returns the names of the replaced files, oldest first.
func (f *file) replaced() (out []string, err error) {
	all, err := os.ReadDir(filepath.Dir(f.Path))
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		at, ok := strings.CutPrefix(e.Name(), filepath.Base(f.Path)+".")
		if _, err := time.Parse(stamp, at); ok && err == nil {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out, nil
}

// Close implements Sink.
func (f *file) Close() error { return nil }
