package installation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// restorePrefix is the name prefix of the directories for trying a copy in restore.
const restorePrefix = "mcp-authd-restore"

// leftoverAge is how old such a directory must be to count as left behind. By then, a running owner
// has locked it.
const leftoverAge = time.Hour

// leftover is a directory with the copy of a killed restore. It belongs to this user, and no
// process uses it.
type leftover struct {
	path string
	root *os.Root
	lock *os.File
}

// leftovers finds leftover directories among the temporary files. The caller must close each.
func leftovers(now time.Time) (out []leftover) {
	paths, _ := filepath.Glob(filepath.Join(strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).
		Replace(os.TempDir()), restorePrefix+"*"))
	for _, path := range paths {
		if l, ok := openLeftover(path, now); ok {
			out = append(out, l)
		}
	}
	return out
}

// openLeftover checks the directory that it has opened, because the path may be replaced.
func openLeftover(path string, now time.Time) (l leftover, ok bool) {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return l, false
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return l, false
	}
	l = leftover{path: path, root: root}
	if l.lock, err = root.Open("."); err != nil {
		l.close()
		return l, false
	}
	info, err := l.lock.Stat()
	if err != nil || info.Mode().Perm() != 0o700 || !ownedByUs(info) || now.Sub(info.ModTime()) < leftoverAge ||
		!lockDirectory(l.lock) {
		l.close()
		return l, false
	}
	return l, true
}

// remove removes the files that restore creates, and nothing else.
func (l leftover) remove() error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := l.root.Remove(sqlite.RehearsalName + suffix); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return os.Remove(l.path) // fails if other files remain
}

// removeLeftovers removes leftover directories, and reports it.
func (in *Installation) removeLeftovers() {
	for _, l := range leftovers(in.now()) {
		if err := l.remove(); err != nil {
			fmt.Fprintf(in.host.Stderr, "mcp-authd: %s, the copy of a restore that was killed, cannot be removed: %s\n",
				label.Printable(l.path), label.Printable(label.FirstLine(err)))
		} else {
			fmt.Fprintf(in.host.Stderr, "mcp-authd: removed %s, the copy of a restore that was killed\n", label.Printable(l.path))
		}
		l.close()
	}
}

func (l leftover) close() {
	if l.lock != nil {
		l.lock.Close()
	}
	l.root.Close()
}

// workplace creates a directory for a restore. It is locked until it is removed, so that other
// processes leave it alone.
func workplace() (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", restorePrefix)
	if err != nil {
		return "", nil, err
	}
	lock, err := os.Open(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	lockDirectory(lock) // without locks, no process treats it as left behind
	return dir, func() error {
		defer lock.Close()
		return os.RemoveAll(dir)
	}, nil
}

// LeftCopies returns the directories with unneeded copies of the database.
func LeftCopies(now time.Time) (paths []string) {
	for _, l := range leftovers(now) {
		paths = append(paths, l.path)
		l.close()
	}
	return paths
}
