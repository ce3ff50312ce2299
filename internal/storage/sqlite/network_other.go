//go:build !linux

package sqlite

// NetworkFileSystem names the network file system of a database path. On this system it knows none.
func NetworkFileSystem(string) string { return "" }

// freeSpace returns -1: unknown.
func freeSpace(string) int64 { return -1 }
