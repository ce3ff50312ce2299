package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// A process that replaces a database locks a file beside it, and every process that opens the
// database checks that lock. So neither a server nor a command keeps using a file that was
// replaced.

func movingPath(database string) string { return database + "-moving" }

// claim reserves the database at path, so that this process can replace it. It returns a wrapped
// ErrLocked while a server or another claim has it.
func claim(path string) (release func(), err error) {
	name := movingPath(path)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	release = func() {
		_ = os.Remove(name) // before the unlock, so that nobody locks a deleted file
		_ = f.Close()
	}
	locked := lockByte(f, 0)
	opened, err := f.Stat() // after the lock: the previous holder may have removed it until then
	named, statErr := os.Stat(name)
	if !locked || err != nil || statErr != nil || !os.SameFile(opened, named) {
		return nil, errors.Join(err, f.Close(), fmt.Errorf("%w, to put another in its place", ErrLocked))
	}
	servers, err := Servers(path)
	if err == nil && len(servers) > 0 {
		err = fmt.Errorf("%w: a server (%s)", ErrLocked, strings.Join(servers, ", "))
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// settled returns a wrapped ErrLocked while another process replaces the database at path.
func settled(path string) error {
	f, err := os.Open(movingPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if pid, held := holder(f, 0); held {
		return fmt.Errorf("%w: process %d is replacing it", ErrLocked, pid)
	}
	return nil
}

// stays records that the database was replaced since it was opened, so that all writes to it are
// lost.
func (s *Store) stays() {
	err := settled(s.path)
	if err == nil {
		err = s.inPlace()
	}
	if err != nil {
		s.damage.CompareAndSwap(nil, &err)
	}
}

// inPlace returns an error if the open file is no longer the file at the path. Otherwise a server
// could run without an error until it stops, and then lose all data.
func (s *Store) inPlace() error {
	now, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the database file was deleted or moved: its content is lost when this server ends")
	case err == nil && !os.SameFile(now, s.file):
		return errors.New("another database was put in the place of this one")
	}
	return err
}
