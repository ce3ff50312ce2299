package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestKillWhileSinksFail: OB-06. Two servers on one PostgreSQL are killed in turns. Meanwhile the
// receiver of a log destination hangs, closes the connection, or fails after it has accepted a
// batch. Each token that a client got must have one entry in the log and be at each log
// destination. Duplicates there must be identical lines.
func TestKillWhileSinksFail(t *testing.T) {
	lane.Long(t, "TestKillLosesNoEntry kills one server")
	hook := &flakyReceiver{lines: map[string]int{}, woken: make(chan struct{})}
	receiver := httptest.NewServer(hook)
	t.Cleanup(receiver.Close)
	archive := filepath.Join(t.TempDir(), "audit.jsonl")
	first := startRobots(t, `database: {url: "`+pgtest.Start(t).Database(t)+`"}
audit:
  detail: full
  sinks:
    - {id: archive, kind: file, path: `+archive+`}
    - {id: hook, kind: webhook, url: "`+receiver.URL+`", secret: `+strings.Repeat("s", 40)+`}
`)
	second := *first
	second.replica = startReplica(t, first.config, nettest.For(t))

	var mu sync.Mutex // guards acknowledged
	acknowledged := map[string]bool{}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	for round := range 4 {
		ctx, enough := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for _, server := range []*robots{first, &second} {
			clients.Go(func() {
				for ctx.Err() == nil {
					if id, status := server.token(); status == http.StatusOK {
						mu.Lock()
						acknowledged[id] = true
						mu.Unlock()
					}
				}
			})
		}
		tokens := count()
		wait.Until(t, "clients have tokens, and the webhook was told of some", func() bool {
			return count() >= tokens+20 && hook.deliveries() > 0
		})
		killed := []*robots{first, &second}[round%2]
		killed.kill()
		hook.wake()
		tokens = count()
		wait.Until(t, "the other server goes on", func() bool { return count() >= tokens+10 })
		enough()
		clients.Wait()
		killed.start(t, killed.config)
	}
	const slow = 3 * time.Minute // servers back off after each failure, and wait for the lease of a killed server
	if !wait.Poll(slow, func() bool { hook.wake(); return hook.deliveries() >= 4 }) {
		t.Fatalf("the webhook has not failed in each of its ways\n%s", second.log.String())
	}
	hook.heal()

	wanted := func(lines map[string]int) (missing int) {
		got := map[string]bool{}
		for line := range lines {
			got[requestOf(t, line)] = true
		}
		for id := range acknowledged {
			if !got[id] {
				missing++
			}
		}
		return missing
	}
	err := wait.Retry(slow, func() error {
		inHook, inFile := wanted(hook.taken()), wanted(linesOf(t, archive))
		if inHook != 0 || inFile != 0 {
			return fmt.Errorf("%d are not in the webhook and %d not in the file", inHook, inFile)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("of %d tokens, %v\n%s", len(acknowledged), err, second.log.String())
	}
	for name, lines := range map[string]map[string]int{"webhook": hook.taken(), "file": linesOf(t, archive)} {
		byIndex := map[int64]string{}
		for line := range lines {
			var e struct{ Index int64 }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v: %s", name, err, line)
			}
			if other, known := byIndex[e.Index]; known && other != line {
				t.Errorf("%s: entry %d came as %s and as %s", name, e.Index, other, line)
			}
			byIndex[e.Index] = line
		}
	}
	var entries []struct{ Fields map[string]string }
	list := first.command(t, "audit", "list", "--event", "token.issued", "--limit", "0", "--json")
	if err := json.Unmarshal(list, &entries); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, e := range entries {
		seen[e.Fields["request_id"]]++
	}
	for id := range acknowledged {
		if seen[id] != 1 {
			t.Errorf("the token of request %s has %d entries", id, seen[id])
		}
	}
	first.command(t, "audit", "verify")
}

func requestOf(t *testing.T, line string) string {
	var e struct{ Fields map[string]string }
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return e.Fields["request_id"]
}

func linesOf(t *testing.T, path string) map[string]int {
	all, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return countLines(all)
}

func countLines(all []byte) map[string]int {
	out := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(all)); lines.Scan(); {
		out[lines.Text()]++
	}
	return out
}

// flakyReceiver receives lines, and fails in three of four requests.
type flakyReceiver struct {
	mu     sync.Mutex // guards the fields below
	asked  int
	healed bool
	woken  chan struct{} // closed to fail the hanging requests
	lines  map[string]int
}

func (f *flakyReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	turn, healed, woken := f.asked%4, f.healed, f.woken
	f.asked++
	f.mu.Unlock()
	if healed {
		turn = 3
	}
	switch turn {
	case 0: // it hangs in the middle of the batch
		io.CopyN(io.Discard, r.Body, 10)
		select {
		case <-woken:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case 1: // it has accepted the batch but reports a failure
		f.take(r)
		w.WriteHeader(http.StatusInternalServerError)
	case 2:
		panic(http.ErrAbortHandler)
	case 3:
		f.take(r)
	}
}

func (f *flakyReceiver) take(r *http.Request) {
	all, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for line, n := range countLines(all) {
		f.lines[line] += n
	}
}

func (f *flakyReceiver) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.healed = true
}

// deliveries returns the number of requests.
func (f *flakyReceiver) deliveries() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// wake fails the hanging requests.
func (f *flakyReceiver) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.woken)
	f.woken = make(chan struct{})
}

func (f *flakyReceiver) taken() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]int{}
	for line, n := range f.lines {
		out[line] = n
	}
	return out
}
