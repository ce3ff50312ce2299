package users

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// leftover is the memory that hashing has left behind. The collector waits for a multiple of
// what lives, and the 19 MiB that a hash is over with would stand beside those of the hashes
// under way: a burst of sign-ins would take all that the collector allows. So it is collected
// before the next hash begins, unless the rest of the heap is larger: then it is little, and a
// collection costs more than it gives.
type leftover struct {
	bytes atomic.Uint64

	mu     sync.Mutex // guards others; held while the memory is collected
	others uint64     // the rest of the heap when it was collected last
}

// add counts the memory of a hash that has ended. While it is collected, others may be under way,
// which have as much each.
func (l *leftover) add(size uint64, underway func() int) {
	l.bytes.Add(size)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes.Load() < max(l.others, 1) {
		return // or it was collected while this one waited
	}
	l.bytes.Store(0)
	before := underway()
	runtime.GC()
	hashes := uint64(max(before, underway())) * size // one that has begun meanwhile lives as well
	lives := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(lives); lives[0].Value.Kind() == metrics.KindUint64 {
		l.others = lives[0].Value.Uint64() - min(lives[0].Value.Uint64(), hashes)
	}
}
