package sqlite

import (
	"path/filepath"
	"syscall"
)

// networks are the types of file systems that other hosts have mounted too (statfs(2)).
var networks = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x5346414f: "AFS", 0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre", 0x47504653: "GPFS",
}

// NetworkFileSystem names the network file system on which a database at path is or would be, and returns "" for a
// local one. SQLite's WAL is memory that all processes share, so they must be on one host; and locks on such
// file systems are often not what they promise (sqlite.org/wal.html, sqlite.org/faq.html#q5). Amazon EFS is NFS.
func NetworkFileSystem(path string) string {
	if path == Memory {
		return ""
	}
	var about syscall.Statfs_t
	for at := path; ; at = filepath.Dir(at) { // the nearest directory that is there
		if err := syscall.Statfs(at, &about); err == nil {
			return networks[uint32(about.Type)]
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}
