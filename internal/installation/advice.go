package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"syscall"

	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// explainDirectory adds advice to an error that a data directory cannot be read or written. It
// returns nil for nil.
func (in *Installation) explainDirectory(err error) error {
	if err == nil {
		return nil
	}
	advice := in.directoryAdvice(err)
	if advice == "" {
		advice = "choose another directory with --data"
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// directoryAdvice returns advice for an error of the data directory, or "" for other errors.
func (in *Installation) directoryAdvice(err error) string {
	dir := in.Config.DataDir
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Sprintf("make room on the disk of the data directory %s, or choose another with --data", dir)
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("the data directory %s is on a disk that is mounted read-only: mount it so that it can be "+
			"written, or choose another with --data", dir)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, sqlite.ErrReadOnly):
		mode := "cannot be looked at"
		switch info, statErr := os.Stat(dir); {
		case statErr == nil:
			mode = "is " + info.Mode().String()
		case errors.Is(statErr, fs.ErrNotExist):
			mode = "is not there"
		}
		return fmt.Sprintf("this runs as %s, and the data directory %s %s: give that user access to it, "+
			"or choose another with --data", CurrentUser(), dir, mode)
	}
	return ""
}

// explainFile adds advice to an error that a file on the command line cannot be read or written.
func explainFile(file string, err error) error {
	if file == Stream {
		return fmt.Errorf("standard output: %w", err)
	}
	advice := "name another file"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, sqlite.ErrFull):
		advice = "make room on its disk, or name a file on another"
	case errors.Is(err, syscall.EROFS):
		advice = "its disk is mounted read-only: name a file on another"
	case errors.Is(err, fs.ErrPermission):
		advice = fmt.Sprintf("this runs as %s: give that user access to it, or run this as another", CurrentUser())
	}
	var path *fs.PathError
	if errors.As(err, &path) { // "open FILE: reason" would repeat the name
		err = path.Err
	}
	return fmt.Errorf("%s: %w; %s", file, err, advice)
}

// CurrentUser names the user of this process.
func CurrentUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return fmt.Sprintf("%s (uid %s)", u.Username, u.Uid)
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
