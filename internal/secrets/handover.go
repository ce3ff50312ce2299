package secrets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// HandOver gives a file just created by root to the owner of its directory. Otherwise a server that
// runs as that user could not read a file created by a command of root. It takes an open file,
// because that user may have replaced the file at the name. If root may not change the owner, the
// file stays as it is.
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
