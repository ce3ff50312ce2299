//go:build unix

package bench

import (
	"flag"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// TestBenchmarks runs each benchmark of the server once, so that broken ones are found before a
// figure is needed. It measures nothing.
func TestBenchmarks(t *testing.T) {
	lane.Long(t, "make test compiles the benchmarks")
	before := flag.Lookup("test.benchtime").Value.String()
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		t.Fatal(err)
	}
	defer flag.Set("test.benchtime", before)
	many := *connected
	*connected = 20
	turns, operations := turn, *carriedOut
	turn, *carriedOut = 2, 20
	defer func() { *connected, turn, *carriedOut = many, turns, operations }()
	for name, run := range map[string]func(*testing.B){
		"Server": BenchmarkServer, "Metadata": BenchmarkMetadata,
		"SignIn": BenchmarkSignIn, "Passkey": BenchmarkPasskey,
		"Account": BenchmarkAccount, "Growth": BenchmarkGrowth, "Sight": BenchmarkSight,
		"GatewayCall": BenchmarkGatewayCall, "GatewayFirstByte": BenchmarkGatewayFirstByte,
	} {
		t.Run(name, func(t *testing.T) {
			failed := true
			testing.Benchmark(func(b *testing.B) {
				run(b)
				failed = b.Failed() // a sub-benchmark failed
			})
			if failed {
				t.Error("it failed")
			}
		})
	}
}
