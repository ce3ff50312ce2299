package assembly

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
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

// boundMemory has a server collect as Go does by default when it takes much memory all the same.
// GOMEMLIMIT overrides it.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(160 << 20)
	}
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
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
