package users

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestHashesLeaveNothing checks that the memory of a hash is collected before the next one begins,
// even if the garbage collector is off. With a large live heap it is collected less often.
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
	none := func() int { return 0 }
	rest := make([]byte, 3*size)
	u.hasher.leftover.add(size, none) // measures the rest of the heap
	u.hasher.leftover.add(size, none)
	if n := u.hasher.leftover.bytes.Load(); n != size {
		t.Errorf("beside 57 MiB that live, %d MiB wait for the collector, want 19", n>>20)
	}
	runtime.KeepAlive(rest)
}

// TestHashThatBeginsMeanwhile checks that a hash that begins during a collection does not count as
// the rest of the heap. Otherwise the next hash would not be collected.
func TestHashThatBeginsMeanwhile(t *testing.T) {
	const size = 19 << 20
	var begun []byte
	var l leftover
	asked := 0
	l.add(size, func() int {
		if asked++; asked == 1 {
			begun = make([]byte, size)
			return 0
		}
		return 1
	})
	runtime.KeepAlive(begun)
	if l.others >= size {
		t.Errorf("got %d MiB beside the hashes, want less than one hash", l.others>>20)
	}
}
