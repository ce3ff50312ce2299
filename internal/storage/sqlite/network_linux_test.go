package sqlite

import (
	"path/filepath"
	"syscall"
	"testing"
)

// RU-09: a network file system is recognised by its type, also for a database that does not exist
// yet.
func TestNetworkFileSystem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "not", "yet", "a.db")
	if got := NetworkFileSystem(file); got != "" {
		t.Skipf("this test runs on %s", got)
	}
	var about syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(filepath.Dir(filepath.Dir(file))), &about); err != nil {
		t.Fatal(err)
	}
	if got := fileSystem(file); got == 0 || got != uint32(about.Type) {
		t.Errorf("RU-09: got type %#x, want %#x", got, about.Type)
	}
	for magic, want := range map[uint32]string{0x6969: "NFS", 0xfe534d42: "SMB", 0x47504653: "GPFS", 0xef53: ""} {
		if got := networkType(magic); got != want {
			t.Errorf("RU-09: %#x: got %q, want %q", magic, got, want)
		}
	}
	if got := NetworkFileSystem(Memory); got != "" {
		t.Errorf("RU-09: memory is on %q", got)
	}
}
