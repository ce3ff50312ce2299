package sqlite

import (
	"path/filepath"
	"syscall"
	"testing"
)

// RU-09: a network file system is known by its type, also for a database that is not there yet.
func TestNetworkFileSystem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "not", "yet", "a.db")
	if got := NetworkFileSystem(file); got != "" {
		t.Skipf("this test runs on %s", got)
	}
	var about syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(filepath.Dir(filepath.Dir(file))), &about); err != nil {
		t.Fatal(err)
	}
	networks[uint32(about.Type)] = "a test"
	defer delete(networks, uint32(about.Type))
	if got := NetworkFileSystem(file); got != "a test" {
		t.Errorf("RU-09: got %q", got)
	}
	if got := NetworkFileSystem(Memory); got != "" {
		t.Errorf("RU-09: memory is on %q", got)
	}
}
