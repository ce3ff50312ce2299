//go:build unix

package bench

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// smoked are the benchmarks that TestBenchmarks runs.
var smoked = map[string]func(*testing.B){
	"Server": BenchmarkServer, "Metadata": BenchmarkMetadata,
	"SignIn": BenchmarkSignIn, "Passkey": BenchmarkPasskey,
	"Bytes": BenchmarkBytes, "Cut": BenchmarkCut, "Sweep": BenchmarkSweep,
	"Account": BenchmarkAccount, "Growth": BenchmarkGrowth, "Sight": BenchmarkSight,
	"GatewayCall": BenchmarkGatewayCall, "GatewayFirstByte": BenchmarkGatewayFirstByte,
}

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
	ended, stored := *backlog, *signIns
	turn, *carriedOut, *backlog, *signIns = 2, 20, 2_000, 20
	defer func() {
		*connected, turn, *carriedOut, *backlog, *signIns = many, turns, operations, ended, stored
	}()
	for name, run := range smoked {
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

// TestCommandsOfTheCapacityPage: OP-06. Each command that docs/capacity.md names for a figure exists: its benchmark is
// one that TestBenchmarks runs, or its test is in the package.
func TestCommandsOfTheCapacityPage(t *testing.T) {
	page, err := os.ReadFile("../docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	commands := regexp.MustCompile("`go test ([^` ]+) -run (\\w+)(?: -bench (\\w+))?[^`]*`").FindAllStringSubmatch(text, -1)
	if len(commands) < 5 || len(commands) != strings.Count(text, "`go test ") {
		t.Fatalf("found %d of %d commands", len(commands), strings.Count(text, "`go test "))
	}
	for _, c := range commands {
		if c[3] != "" {
			if smoked[c[3]] == nil {
				t.Errorf("%s: no such benchmark", c[0])
			}
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", c[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(files, func(file string) bool {
			b, err := os.ReadFile(file)
			return err == nil && regexp.MustCompile(`(?m)^func Test\w*`+c[2]+`\w*\(`).Match(b)
		})
		if !found {
			t.Errorf("%s: no such test", c[0])
		}
	}
}
