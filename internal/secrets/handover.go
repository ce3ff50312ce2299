package secrets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// HandOver gives a file that this process has just made to the owner of its directory when root has made it: a
// server that runs as that user could not read what a command of root has left there. It takes an open file, not a
// name, since that user can have another file at the name by now. Root that may not give files away keeps it.
func HandOver(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	uid, gid, ok := ownersOf(info)
	if !ok || uid == 0 {
		return nil
	}
	if err := f.Chown(uid, gid); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
