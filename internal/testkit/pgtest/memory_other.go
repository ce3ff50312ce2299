//go:build !linux

package pgtest

// inMemory is on the disk: there is no one place for a file system in memory.
func inMemory() string { return "" }
