package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// What the servers of one file know of each other: each locks one byte of a file beside the
// database. The kernel takes a lock away when its process ends, however it ends. No server waits
// for a lock, so commands and the start after a crash are never stopped.

// mostServers is how many servers of one file can be told apart.
const mostServers = 16

func serversPath(database string) string { return database + "-servers" }

// Attend tells the other servers of this file of this one, until Close, and returns their
// processes. A second server is not refused: at a restart the old one may still be finishing.
// It logs a warning for a file on a network file system.
func (s *Store) Attend() (others []string, err error) {
	if s.path == Memory || s.attendance != nil {
		return nil, nil
	}
	if network := NetworkFileSystem(s.path); network != "" {
		s.log.Warn(fmt.Sprintf("the SQLite database is on %s, where it can be damaged: SQLite needs a disk of this "+
			"machine; move data_dir to one, or use PostgreSQL", network), "database", s.path)
	}
	f, err := os.OpenFile(serversPath(s.path), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for slot := int64(0); slot < mostServers && !lockByte(f, slot); slot++ {
	}
	s.attendance = f
	s.stays()
	return holders(f), nil
}

// Servers returns the processes of other servers that use the database at path. It makes no file.
func Servers(path string) ([]string, error) {
	f, err := os.Open(serversPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return holders(f), nil
}

// holders returns the processes that hold a byte; this one is not among them. Those of another
// container have no number here.
func holders(f *os.File) (processes []string) {
	for slot := range int64(mostServers) {
		pid, held := holder(f, slot)
		switch {
		case held && pid > 0:
			processes = append(processes, strconv.Itoa(pid))
		case held:
			processes = append(processes, "one of another container")
		}
	}
	return processes
}
