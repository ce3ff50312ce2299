package users

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// leftover counts the memory that finished hashes have left as garbage. The garbage collector waits
// for a multiple of the live heap, so the 19 MiB of each finished hash would add to the memory of
// running hashes. A burst of sign-ins would use all memory that the collector allows. So leftover
// collects it before the next hash begins. It does not if the rest of the heap is larger: then the
// garbage is relatively small, and a collection costs more than it saves.
type leftover struct {
	bytes atomic.Uint64

	mu     sync.Mutex // guards others; held during a collection
	others uint64     // size of the rest of the heap after the last collection
}

// add counts the memory of a finished hash and collects it if necessary. underway returns the
// number of running hashes, which use size bytes each.
func (l *leftover) add(size uint64, underway func() int) {
	l.bytes.Add(size)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes.Load() < max(l.others, 1) {
		return // too little, or another call has collected it meanwhile
	}
	l.bytes.Store(0)
	before := underway()
	runtime.GC()
	hashes := uint64(max(before, underway())) * size // a hash that began meanwhile is also live
	lives := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(lives); lives[0].Value.Kind() == metrics.KindUint64 {
		l.others = lives[0].Value.Uint64() - min(lives[0].Value.Uint64(), hashes)
	}
}
