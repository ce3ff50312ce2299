//go:build !linux

package ramdisk

// Dir returns "", the disk: other systems have no common place for a file system in memory.
func Dir() string { return "" }
