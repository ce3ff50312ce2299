package ramdisk

import "syscall"

const (
	memory = "/dev/shm"
	room   = 4 << 30 // for several PostgreSQL clusters
)

// Dir returns the directory of the file system in memory if it has enough room. Otherwise it returns "", with
// which os.MkdirTemp uses the default directory.
func Dir() string {
	var free syscall.Statfs_t
	if err := syscall.Statfs(memory, &free); err != nil || free.Bavail*uint64(free.Bsize) < room {
		return ""
	}
	return memory
}
