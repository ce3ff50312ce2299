package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/sandbox"
)

// TestMain runs the MCP server of the tests if the binary is started as one.
func TestMain(m *testing.M) {
	sandbox.Run()
	if mode := os.Getenv("TEST_PROGRAM"); mode != "" {
		(&program{
			mode:     mode,
			waiting:  map[string]chan json.RawMessage{},
			released: make(chan struct{}),
			late:     make(chan struct{}),
		}).run()
		return
	}
	os.Exit(m.Run())
}

// program is a small MCP server for tests. It speaks 2025-11-25, or only 2026-07-28 in the mode
// "modern".
type program struct {
	mode     string
	mu       sync.Mutex // guards stdout and waiting
	waiting  map[string]chan json.RawMessage
	released chan struct{} // closed at the client's request
	late     chan struct{} // synchronizes with the late call
}

func (p *program) say(v any) {
	b, _ := json.Marshal(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	os.Stdout.Write(append(b, '\n'))
}

func (p *program) answer(id json.RawMessage, result any) {
	p.say(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (p *program) note(method string, params any) {
	p.say(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

func (p *program) run() {
	if p.mode == "broken" {
		fmt.Fprintln(os.Stderr, "it does not start")
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "hello", strings.Repeat("x", 5000))
	if p.mode == "bom" {
		os.Stdout.Write(byteOrderMark)
	} else {
		fmt.Println("Welcome to the server!") // a mistake of many programs
	}
	if p.mode == "unread" {
		linger()
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var f frame
		if json.Unmarshal(in.Bytes(), &f) != nil {
			continue
		}
		if f.isAnswer() {
			p.mu.Lock()
			if c := p.waiting[string(f.ID)]; c != nil {
				c <- f.Result
			}
			p.mu.Unlock()
			continue
		}
		if f.isCall() {
			go p.serve(f)
		}
		switch f.Method {
		case "notifications/cancelled":
			p.note("notifications/tools/list_changed", map[string]any{"because": f.Params})
		case "notifications/release":
			close(p.released)
		}
	}
	if p.mode == "deaf" {
		linger() // it continues after the end of its input
	}
}

// linger waits longer than any test runs.
func linger() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	<-ctx.Done()
}

func (p *program) serve(f frame) {
	switch f.Method {
	case "initialize":
		p.answer(f.ID, map[string]any{
			"protocolVersion": at(f.Params, "protocolVersion"),
			"serverInfo":      map[string]string{"name": "test", "version": "1"},
			"capabilities": map[string]any{
				"tools": map[string]any{}, "logging": map[string]any{}, "tasks": map[string]any{},
				"resources": map[string]any{"subscribe": true},
			},
		})
	case "tools/list":
		p.answer(f.ID, map[string]any{"tools": []any{map[string]any{"name": "echo", "inputSchema": map[string]any{
			"type":       "object",
			"properties": map[string]any{"region": map[string]any{"type": "string", "x-mcp-header": "Region"}},
		}}}})
	case "subscriptions/listen":
		meta := map[string]any{mcp.MetaSubscription: f.ID}
		p.note("notifications/subscriptions/acknowledged", map[string]any{"_meta": meta})
		p.note("notifications/tools/list_changed", map[string]any{"_meta": meta})
		p.answer(f.ID, map[string]any{"resultType": "complete", "_meta": meta})
	case "acme/unknown":
		p.say(map[string]any{"jsonrpc": "2.0", "id": f.ID, "error": map[string]any{"code": -32601, "message": "what?"}})
	case "resources/read":
		p.say(map[string]any{
			"jsonrpc": "2.0", "id": f.ID, "error": map[string]any{"code": -32002, "message": "no such resource"},
		})
	case "resources/subscribe", "resources/unsubscribe":
		p.answer(f.ID, map[string]any{})
		p.note("notifications/resources/updated", map[string]any{"uri": at(f.Params, "uri"), "by": f.Method})
	case "tools/call":
		p.call(f, text(at(f.Params, "name")))
	case "server/discover":
		switch p.mode {
		case "modern":
			p.answer(f.ID,
				map[string]any{
					"resultType": "complete", "supportedVersions": []string{"2026-07-28"},
					"capabilities": map[string]any{"tools": map[string]any{}},
					"ttlMs":        7, "cacheScope": "private",
					"_meta": map[string]any{mcp.MetaServer: map[string]string{"name": "test"}}})
			return
		case "strict": // like servers of some SDKs, which end on any message before initialize
			os.Exit(1)
		}
		p.say(map[string]any{"jsonrpc": "2.0", "id": f.ID, "error": map[string]any{"code": -32601, "message": "what?"}})
	default:
		p.answer(f.ID, map[string]any{"method": f.Method, "params": f.Params})
	}
}

func (p *program) call(f frame, tool string) {
	switch tool {
	case "ask":
		c := make(chan json.RawMessage, 1)
		id := `"ask-1"`
		p.mu.Lock()
		p.waiting[id] = c
		p.mu.Unlock()
		p.say(map[string]any{
			"jsonrpc": "2.0", "id": json.RawMessage(id), "method": "sampling/createMessage",
			"params": map[string]any{"of": f.ID},
		})
		p.answer(f.ID, map[string]any{"heard": <-c})
	case "progress":
		for i := range 3 {
			p.note("notifications/progress",
				map[string]any{"progressToken": at(f.Params, "_meta", "progressToken"), "progress": i})
		}
		p.note("notifications/message",
			map[string]any{"level": "info", "data": "secret of " + text(at(f.Params, "arguments", "who"))})
		p.answer(f.ID, map[string]any{"done": true})
	case "hang":
	case "late":
		<-p.late
		p.note("notifications/message",
			map[string]any{"level": "info", "data": "secret of " + text(at(f.Params, "arguments", "who"))})
		p.late <- struct{}{}
	case "release":
		p.late <- struct{}{}
		<-p.late
		p.answer(f.ID, map[string]any{"released": true})
	case "task":
		p.note("notifications/tasks/status",
			map[string]any{"taskId": "task of " + text(at(f.Params, "arguments", "who")), "status": "working"})
		p.answer(f.ID, map[string]any{})
	case "held":
		<-p.released
		p.answer(f.ID, map[string]any{"held": true})
	case "crash":
		os.Exit(3)
	case "large":
		p.answer(f.ID, map[string]any{"x": strings.Repeat("x", 1<<20)})
	case "child":
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			p.answer(f.ID, map[string]any{"error": err.Error()})
			return
		}
		p.answer(f.ID, map[string]any{"child": cmd.Process.Pid})
	case "grow", "spin", "fill", "files":
		p.exhaust(f, tool)
	case "change":
		p.note("notifications/tools/list_changed", nil)
		p.answer(f.ID, map[string]any{})
	default:
		dir, _ := os.Getwd()
		p.answer(f.ID, map[string]any{"pid": os.Getpid(), "env": os.Environ(), "dir": dir, "params": f.Params})
	}
}

// exhaust uses more of a resource than its limit allows.
func (p *program) exhaust(f frame, what string) {
	var err error
	n, all := 0, [][]byte{} // each case is finite, in case the limit fails
	switch what {
	case "grow":
		for range 2000 {
			all = append(all, bytes.Repeat([]byte("x"), 1<<20))
		}
	case "spin":
		for began := time.Now(); time.Since(began) < time.Minute; n++ {
		}
	case "fill":
		file, failed := os.Create(text(at(f.Params, "arguments", "path")))
		for err = failed; err == nil && n < 1000; n++ {
			_, err = file.Write(make([]byte, 64<<10))
		}
	case "files":
		kept := []*os.File{}
		for ; err == nil && n < 10_000; n++ {
			var file *os.File
			file, err = os.Open("/dev/null")
			kept = append(kept, file)
		}
		for _, file := range kept {
			file.Close()
		}
	}
	p.answer(f.ID, map[string]any{"n": n, "error": fmt.Sprint(err), "kept": len(all)})
}
