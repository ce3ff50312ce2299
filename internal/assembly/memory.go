package assembly

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// SettleMemory uses more memory for less garbage collection. With a live heap of a few megabytes,
// Go's default would collect constantly, and twice before a server has started. GOGC overrides it.
// A program calls it first.
func SettleMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// leastLimit is the memory limit while the live heap is small. Together with the mapped pages of
// the file, 100 concurrent sign-ins fit into 120 MB.
const leastLimit = 68 << 20

// boundMemory makes a server collect before it takes much memory. With a large live heap it
// collects as rarely as Go does by default, because a limit below the live heap would make it
// collect constantly. GOMEMLIMIT overrides it.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		followMemory()
	}
}

// followMemory limits the memory of the process. With several servers in a process, the first sets
// the limit.
var followMemory = sync.OnceFunc(func() {
	limit := int64(leastLimit)
	debug.SetMemoryLimit(limit)
	afterCollections(func() {
		// setting it stops all threads, so small changes are not worth it
		if next := limitFor(lives()); next > limit+limit/8 || next < limit-limit/8 {
			limit = next
			debug.SetMemoryLimit(limit)
		}
	})
})

// limitFor returns the limit for a live heap and the other memory of Go. Above the ordinary size,
// the heap may double.
func limitFor(live, beside int64) int64 {
	const ordinary = 24 << 20
	return max(leastLimit, 2*(live-ordinary)+beside)
}

// lives returns the live heap of the last collection, and the memory of Go outside the heap, which
// is mainly stacks.
func lives() (live, beside int64) {
	all := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(all)
	beside = int64(all[1].Value.Uint64())
	for _, heap := range all[2:] {
		beside -= int64(heap.Value.Uint64())
	}
	return int64(all[0].Value.Uint64()), beside
}

// afterCollections calls f after each collection, while the program runs.
func afterCollections(f func()) {
	type sentinel struct{ _ *byte } // has a pointer, so that it is not allocated together with other objects
	runtime.AddCleanup(&sentinel{}, func(f func()) {
		f()
		afterCollections(f)
	}, f)
}

const (
	startInterval = time.Second
	restInterval  = 5 * time.Second
	// work is more than housekeeping and probes allocate in an interval.
	work = 8 << 20
)

// restMemory returns memory to the system after the start and after each load, until ctx ends. The
// runtime would keep it, and would collect only after two minutes without allocations.
func restMemory(ctx context.Context) {
	worked, before := true, allocated()
	for wait := startInterval; ; wait = restInterval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		now := allocated()
		works := now-before > work
		if worked && !works {
			debug.FreeOSMemory()
		}
		worked, before = works, now
	}
}

// allocated returns the total number of bytes allocated by this process.
func allocated() uint64 {
	all := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(all) // stops no thread
	return all[0].Value.Uint64()
}
