package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// rounds calls the tool until it has no more questions. It returns questions unchanged before the
// call is a task, and up to 2025-11-25.
func (j *job) rounds() (mcp.Result, error) {
	ctx := j.ctx
	for {
		result, err := j.survive(ctx, j.handle)
		if err != nil {
			return nil, err
		}
		call, ok := j.req.(*mcp.CallToolRequest)
		asks := questions(result)
		if !ok || len(asks) == 0 || !j.isTask() || j.dialect() != extendedTasks {
			return result, j.checkOutput(ctx, call, result)
		}
		if err := j.declared(result); err != nil {
			return nil, err
		}
		answers, err := j.ask(asks)
		if err != nil {
			return nil, err
		}
		own, params := *call, *call.Params
		params.InputResponses, params.RequestState = answers, stateIn(result)
		own.Params = &params
		j.req = &own
		var used atomic.Bool // each state is local and used once: see Once
		ctx = context.WithValue(j.ctx, onceKey{}, func(context.Context) (bool, error) { return !used.Swap(true), nil })
	}
}

func stateIn(result mcp.Result) string {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return r.RequestState
	case *inputRequired:
		return r.RequestState
	}
	return ""
}

// ask makes a client of 2026-07-28 answer all questions through tasks/update, in any number of
// parts. A key is never reused within a task.
func (j *job) ask(asks mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	names, wire := map[string]string{}, mcp.InputRequestMap{}
	j.mu.Lock()
	for name, question := range asks {
		key := name
		for n := 2; j.keys[key]; n++ {
			key = fmt.Sprintf("%s-%d", name, n)
		}
		j.keys[key], names[key], wire[key] = true, name, question
	}
	j.mu.Unlock()
	raw, err := json.Marshal(wire)
	if err != nil {
		return nil, err
	}
	var open map[string]json.RawMessage
	if err := json.Unmarshal(raw, &open); err != nil {
		return nil, err
	}
	if err := j.record(func(s *taskState) { s.Status, s.Asks, s.Answers = taskInput, open, nil }); err != nil {
		return nil, err
	}
	said, err := j.answers()
	if err != nil {
		return nil, err
	}
	decoded, err := decodeAnswers(said)
	if err != nil {
		return nil, err
	}
	out := mcp.InputResponseMap{}
	for key, answer := range decoded {
		out[names[key]] = answer
	}
	return out, nil
}

// answers waits for the answers to all questions. Another replica may have received them.
func (j *job) answers() (map[string]json.RawMessage, error) {
	tick := time.NewTicker(j.tasks.o.PollInterval)
	defer tick.Stop()
	for {
		woken := j.woken()
		_, s, err := j.tasks.read(j.ctx, j.task.Owner, j.task.ID)
		switch {
		case errors.Is(err, mcpresource.ErrNoTask), err == nil && s.ended():
			return nil, errTaskCancelled
		case err == nil && len(s.Asks) == 0:
			return s.Answers, nil
		}
		select { // a failing store may recover
		case <-j.ctx.Done():
			return nil, context.Cause(j.ctx)
		case <-woken:
		case <-tick.C:
		}
	}
}
