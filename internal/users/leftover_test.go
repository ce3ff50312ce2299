package users

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestHashesLeaveNothing: what a hash has used is collected before the next one begins, however
// long the collector would wait by itself; where much else lives, after some.
func TestHashesLeaveNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	u, err := New(Config{Store: struct{ Store }{}})
	if err != nil {
		t.Fatal(err)
	}
	const size = 19 << 20
	used := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	for range 4 {
		if ok, _, err := u.hasher.matches(t.Context(), good, "", false); ok || err != nil {
			t.Fatalf("got %v, %v", ok, err)
		}
	}
	if now := used(); now > before+size {
		t.Errorf("four hashes have left %d MiB", (now-before)>>20)
	}
	rest := make([]byte, 3*size)
	u.hasher.leftover.add(size, 0) // sees the rest
	u.hasher.leftover.add(size, 0)
	if n := u.hasher.leftover.bytes.Load(); n != size {
		t.Errorf("beside 57 MiB that live, %d MiB wait for the collector, want 19", n>>20)
	}
	runtime.KeepAlive(rest)
}
