package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Who puts another database in the place of one locks a file beside it meanwhile, in which a database that is
// opened looks. So neither a server nor a command goes on with a file that has no name any more.

func movingPath(database string) string { return database + "-moving" }

// claim takes the database at path for this process, to put another in its place. ErrLocked, wrapped, while a
// server or another claim has it.
func claim(path string) (release func(), err error) {
	name := movingPath(path)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	release = func() {
		_ = os.Remove(name) // first, so that nobody locks a file without a name
		_ = f.Close()
	}
	locked := lockByte(f, 0)
	opened, err := f.Stat() // once it is locked: until then the one before may have removed it
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

// settled returns ErrLocked, wrapped, while another process puts a database in the place of that at path.
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
		return fmt.Errorf("%w: process %d puts another in its place", ErrLocked, pid)
	}
	return nil
}

// stays marks a database that was replaced since it was opened: what is written to it is lost.
func (s *Store) stays() {
	err := settled(s.path)
	if err == nil {
		err = s.inPlace()
	}
	if err != nil {
		s.damage.CompareAndSwap(nil, &err)
	}
}

// inPlace returns an error when the file that is open is no longer the one at the path. A server could go on
// without a fault until its end, and all would be gone then.
func (s *Store) inPlace() error {
	now, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the file of the database was deleted or moved away: what it has is lost when this server ends")
	case err == nil && !os.SameFile(now, s.file):
		return errors.New("another database was put in the place of this one")
	}
	return err
}
