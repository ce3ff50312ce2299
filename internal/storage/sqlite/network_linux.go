package sqlite

import (
	"path/filepath"
	"syscall"
)

// networkType names a file system type that other hosts can also mount (statfs(2)), and returns ""
// for others.
func networkType(magic uint32) string {
	switch magic {
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x5346414f:
		return "AFS"
	case 0x00c36400:
		return "Ceph"
	case 0x0bd00bd0:
		return "Lustre"
	case 0x47504653:
		return "GPFS"
	}
	return ""
}

// NetworkFileSystem names the network file system of a database path, which need not exist, and
// returns "" for a local one. SQLite's WAL uses memory shared by all processes, so they must be on
// one host. Locks on such file systems are also often unreliable (sqlite.org/wal.html,
// sqlite.org/faq.html#q5). Amazon EFS is NFS.
func NetworkFileSystem(path string) string {
	if path == Memory {
		return ""
	}
	return networkType(fileSystem(path))
}

// fileSystem returns the file system type of path, or of its nearest existing directory. 0:
// unknown.
func fileSystem(path string) uint32 {
	var about syscall.Statfs_t
	for at := path; ; at = filepath.Dir(at) {
		if err := syscall.Statfs(at, &about); err == nil {
			return uint32(about.Type)
		}
		if at == filepath.Dir(at) {
			return 0
		}
	}
}

// freeSpace returns how many bytes the file system of path has left for its user; -1: unknown.
func freeSpace(path string) int64 {
	var about syscall.Statfs_t
	if err := syscall.Statfs(path, &about); err != nil {
		return -1
	}
	return int64(about.Bavail) * about.Bsize
}
