package assembly

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// settleMemory trades memory that is there for less work: what lives is a few megabytes, so
// collecting at its double, as Go does by default, is collecting all the time. Beyond the
// limit it is collected as before. What the start has used goes back first. GOGC and
// GOMEMLIMIT override it.
func settleMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(160 << 20)
	}
	debug.FreeOSMemory()
}

const (
	restInterval = 5 * time.Second
	// work is more than housekeeping and probes allocate in an interval.
	work = 8 << 20
)

// restMemory gives the memory of a load back when it is over, until ctx ends: the runtime
// keeps it for the next, and without allocations collects after two minutes.
func restMemory(ctx context.Context) {
	ticks := time.NewTicker(restInterval)
	defer ticks.Stop()
	worked, before := false, allocated()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
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
