package pgtest

import "syscall"

// memory is a file system in memory, where there is one with room for some clusters. The disk would be
// what most tests wait for, though nothing of them has to last.
const (
	memory = "/dev/shm"
	room   = 4 << 30
)

// inMemory is where clusters are made in memory; "": on the disk.
func inMemory() string {
	var free syscall.Statfs_t
	if err := syscall.Statfs(memory, &free); err != nil || free.Bavail*uint64(free.Bsize) < room {
		return ""
	}
	return memory
}
