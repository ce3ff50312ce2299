//go:build !linux

package ramdisk

// Dir returns "", because other systems have no common directory for a file system in memory.
func Dir() string { return "" }
