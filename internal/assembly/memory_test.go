package assembly

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

func TestLimitFor(t *testing.T) {
	const mb = 1 << 20
	for _, tt := range []struct{ live, beside, want int64 }{
		{8 * mb, 6 * mb, leastLimit}, // idle
		{49 * mb, 8 * mb, leastLimit},
		{200 * mb, 40 * mb, 392 * mb},
		{2000 * mb, 300 * mb, 4252 * mb},
	} {
		if got := limitFor(tt.live, tt.beside); got != tt.want {
			t.Errorf("%d MB live, %d beside: got %d, want %d", tt.live/mb, tt.beside/mb, got/mb, tt.want/mb)
		}
	}
}

// TestMemoryIsBounded checks that the limit follows the live heap, up and down.
func TestMemoryIsBounded(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	boundMemory()
	limit := func() int64 { return debug.SetMemoryLimit(-1) }
	until := func(what string, is func() bool) {
		t.Helper()
		wait.Success(t, what, func() error {
			if runtime.GC(); !is() {
				return fmt.Errorf("the limit is %d MB", limit()>>20)
			}
			return nil
		})
	}
	before := limit()
	kept := make([][]byte, 300)
	for i := range kept {
		kept[i] = make([]byte, 1<<20)
	}
	until("the limit follows 300 MB live", func() bool { return limit() > before+(400<<20) })
	runtime.KeepAlive(kept)
	kept = nil
	until("the limit follows their end", func() bool { return limit() < before+(100<<20) })
}
