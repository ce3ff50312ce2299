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

// SettleMemory trades memory that is there for less work: what lives is a few megabytes, so
// collecting at its double, as Go does by default, is collecting all the time, and twice before a
// server has started. GOGC overrides it. A program calls it first.
func SettleMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// leastLimit is what the memory of Go is bounded by while little lives: with the pages of the file that are used,
// 100 people who sign in at once fit into 120 MB.
const leastLimit = 68 << 20

// boundMemory has a server collect before it takes much memory, and as rarely as Go does by default where much
// lives: a limit that stays below what lives would have it collect without end. GOMEMLIMIT overrides it.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		followMemory()
	}
}

// followMemory bounds the memory of the process; of several servers in one, the first does.
var followMemory = sync.OnceFunc(func() {
	limit := int64(leastLimit)
	debug.SetMemoryLimit(limit)
	afterCollections(func() {
		// to set it stops all threads, so that a small change is not worth it
		if next := limitFor(lives()); next > limit+limit/8 || next < limit-limit/8 {
			limit = next
			debug.SetMemoryLimit(limit)
		}
	})
})

// limitFor is the limit for a heap of which so much lives, beside so much that is no heap. What lives beyond the
// ordinary may double.
func limitFor(live, beside int64) int64 {
	const ordinary = 24 << 20
	return max(leastLimit, 2*(live-ordinary)+beside)
}

// lives returns what was alive in the last collection, and the memory of Go that is no heap: stacks, above all.
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

// afterCollections calls f after each collection, as long as the program runs.
func afterCollections(f func()) {
	type sentinel struct{ _ *byte } // with a pointer, or it shares its place with others
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

// restMemory gives the memory of the start, and later that of a load, back when it is over, until ctx
// ends: the runtime keeps it for the next, and without allocations collects after two minutes.
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

// allocated is how many bytes this process has ever asked for.
func allocated() uint64 {
	all := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(all) // stops no thread
	return all[0].Value.Uint64()
}
