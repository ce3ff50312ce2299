package gosdk

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// paying adds a tool that asks for confirmation and pays once.
func paying(paid *atomic.Int32) func(*mcp.Server) {
	pay := func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.RequestState == "" {
			if _, err := Once(ctx); !errors.Is(err, ErrNoState) {
				return nil, errors.New("a request without a state has one")
			}
			return &mcp.CallToolResult{RequestState: "step one", InputRequests: mcp.InputRequestMap{
				"name": &mcp.ElicitParams{Message: "pay?", RequestedSchema: anyObject}}}, nil
		}
		first, err := Once(ctx)
		if err != nil {
			return nil, err
		}
		if first {
			paid.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid now"}}}, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "was paid"}}}, nil
	}
	return raw("asks", string(anyObject), pay)
}

// TestOnce: RS-183 the effect happens once, although a state can be returned any number of times.
func TestOnce(t *testing.T) {
	var paid atomic.Int32
	key, err := mcpresource.NewSealer([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	shared := &Options{State: key, Spent: newSpent(time.Now)}
	one := newRig(t, shared, paying(&paid))
	two := newRig(t, shared, paying(&paid))
	ask := func(r *rig, state string) reply {
		return r.retry(t, "alice-mcp", "tools/call", "asks", `"name":"asks","arguments":{}`, state)
	}
	t.Run("RS-183 of 32 requests at two replicas one pays", func(t *testing.T) {
		state := stateOf(t, ask(one, ""))
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				if got := ask([]*rig{one, two}[i%2], state); !strings.Contains(got.text, "paid") {
					t.Errorf("got %s", got.text)
				}
			})
		}
		if all.Wait(); paid.Load() != 1 {
			t.Errorf("paid %d times", paid.Load())
		}
	})
	t.Run("RS-183 another state is another time", func(t *testing.T) {
		got := ask(one, stateOf(t, ask(one, "")))
		if !strings.Contains(got.text, "paid now") || paid.Load() != 2 {
			t.Errorf("got %s, paid %d times", got.text, paid.Load())
		}
	})
}

// TestSpent: RS-183 a used state is remembered until it expires, and does not affect others.
func TestSpent(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := newSpent(func() time.Time { return now })
	use := func(id string, until time.Time) (bool, error) { return s.Use(t.Context(), id, until) }
	end := now.Add(time.Minute)
	if first, err := use("a", end); !first || err != nil {
		t.Errorf("got %t %v", first, err)
	}
	if now = end; true {
		if first, _ := use("a", end); first {
			t.Error("RS-183: it was forgotten at its end, which is not over")
		}
	}
	for i := 1; i < mostSpent; i++ {
		s.until[strings.Repeat("x", i%7)+time.Duration(i).String()] = end
	}
	if _, err := use("one more", end); !errors.Is(err, errSpentFull) {
		t.Errorf("RS-183 full: got %v", err)
	}
	if now = end.Add(time.Second); true {
		if first, err := use("one more", now.Add(time.Minute)); !first || err != nil || len(s.until) != 1 {
			t.Errorf("got %t %v, %d left", first, err, len(s.until))
		}
	}
}
