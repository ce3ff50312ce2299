package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// The servers of one file detect each other by locks: each locks one byte of a file beside the
// database. The kernel releases a lock when its process ends in any way. No server waits for a
// lock, so commands and restarts after a crash are never blocked.

// mostServers is how many servers of one file can be distinguished.
const mostServers = 16

func serversPath(database string) string { return database + "-servers" }

// Attend makes this server visible to the other servers of the file until Close, and returns their
// processes. A second server is not refused, because the old one may still be stopping during a
// restart. It logs a warning for a file on a network file system.
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

// Servers returns the processes of other servers that use the database at path. It creates no file.
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

// holders returns the other processes that hold a byte. Processes of another container have no
// number here.
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
