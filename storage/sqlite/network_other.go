//go:build !linux

package sqlite

// NetworkFileSystem names the network file system on which a database at path is or would be. It knows none here.
func NetworkFileSystem(string) string { return "" }

// freeSpace returns -1: unknown.
func freeSpace(string) int64 { return -1 }
