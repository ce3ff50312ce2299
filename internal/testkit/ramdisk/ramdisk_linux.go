package ramdisk

import "syscall"

const (
	memory = "/dev/shm"
	room   = 4 << 30 // for some clusters of PostgreSQL
)

// Dir returns the file system in memory if it has enough room, and otherwise "", which makes os.MkdirTemp use
// the disk.
func Dir() string {
	var free syscall.Statfs_t
	if err := syscall.Statfs(memory, &free); err != nil || free.Bavail*uint64(free.Bsize) < room {
		return ""
	}
	return memory
}
