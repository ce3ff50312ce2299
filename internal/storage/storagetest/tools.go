package storagetest

import (
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const toolServer = "https://mcp.example/mcp"

func defined(text string, at time.Time) storage.ToolDefinition {
	return storage.ToolDefinition{Digest: sha256.Sum256([]byte(text)), Text: text, At: at}
}

// withoutTexts returns a tool as in lists.
func withoutTexts(t storage.Tool) storage.Tool {
	t.Accepted.Text, t.Offered.Text = "", ""
	return t
}

func (e *env) seeTool(t *testing.T, name string, d storage.ToolDefinition, trust bool) []storage.Tool {
	t.Helper()
	fresh, err := e.s.SeeTools(e.ctx, toolServer, map[string]storage.ToolDefinition{name: d}, trust)
	check(t, err)
	return fresh
}

func (e *env) wantTool(t *testing.T, want storage.Tool) {
	t.Helper()
	got, err := e.s.Tool(e.ctx, toolServer, want.Name)
	check(t, err)
	same(t, got, want)
}

// toolDefinitions checks RS-219: seen and accepted tool definitions.
func toolDefinitions(t *testing.T, e *env) {
	one, two, three := defined(`{"name":"a"}`, e.now), defined(`{"name":"a","x":2}`, e.now.Add(time.Minute)),
		defined("", e.now.Add(2*time.Minute))
	known := storage.Tool{Resource: toolServer, Name: "a", Accepted: one}
	t.Run("RS-219 the first definition is accepted with trust, and told once", func(t *testing.T) {
		same(t, e.seeTool(t, "a", one, true), []storage.Tool{withoutTexts(known)})
		same(t, len(e.seeTool(t, "a", one, true)), 0)
		same(t, len(e.seeTool(t, "a", one, false)), 0)
		e.wantTool(t, known)
	})
	t.Run("RS-219 another definition is offered, and told once", func(t *testing.T) {
		known.Offered = two
		same(t, e.seeTool(t, "a", two, true), []storage.Tool{withoutTexts(known)})
		same(t, len(e.seeTool(t, "a", two, true)), 0)
		same(t, len(e.seeTool(t, "a", one, true)), 0)
		e.wantTool(t, known)
	})
	t.Run("RS-219 what is no longer offered is not accepted", func(t *testing.T) {
		known.Offered = three
		same(t, e.seeTool(t, "a", three, true), []storage.Tool{withoutTexts(known)})
		wantErr(t, e.s.AcceptTool(e.ctx, toolServer, "a", two.Digest, "ann", e.now), storage.ErrChanged)
		wantErr(t, e.s.AcceptTool(e.ctx, toolServer, "b", two.Digest, "ann", e.now), storage.ErrNotFound)
		e.wantTool(t, known)
	})
	t.Run("RS-219 the offered definition is accepted", func(t *testing.T) {
		at := e.now.Add(time.Hour)
		check(t, e.s.AcceptTool(e.ctx, toolServer, "a", three.Digest, "ann", at))
		check(t, e.s.AcceptTool(e.ctx, toolServer, "a", three.Digest, "bob", at))
		three.At = at
		known = storage.Tool{Resource: toolServer, Name: "a", Accepted: three, AcceptedBy: "ann"}
		e.wantTool(t, known)
	})
	t.Run("RS-219 the accepted definition stays, and the offer ends", func(t *testing.T) {
		e.seeTool(t, "a", one, true)
		at := e.now.Add(2 * time.Hour)
		check(t, e.s.AcceptTool(e.ctx, toolServer, "a", three.Digest, "bob", at))
		known.Accepted.At, known.AcceptedBy = at, "bob"
		e.wantTool(t, known)
	})
	t.Run("RS-219 without trust the first definition is offered", func(t *testing.T) {
		fresh := storage.Tool{Resource: toolServer, Name: "b", Offered: one}
		same(t, e.seeTool(t, "b", one, false), []storage.Tool{withoutTexts(fresh)})
		same(t, len(e.seeTool(t, "b", one, true)), 0)
		offered, err := e.s.OfferedTools(e.ctx, 10)
		check(t, err)
		same(t, offered, []storage.Tool{withoutTexts(fresh)})
		all, err := e.s.Tools(e.ctx, toolServer)
		check(t, err)
		same(t, all, []storage.Tool{withoutTexts(known), withoutTexts(fresh)})
		other, err := e.s.Tools(e.ctx, toolServer+"/other")
		check(t, err)
		same(t, len(other), 0)
		none, err := e.s.SeeTools(e.ctx, toolServer, nil, true)
		check(t, err)
		same(t, len(none), 0)
	})
}

// raceSeeTool: one of 32 servers that see the same change gets it.
func raceSeeTool(t *testing.T, e *env) {
	e.seeTool(t, "a", defined("1", e.now), true)
	var told atomic.Int32
	compete(func(i int) { told.Add(int32(len(e.seeTool(t, "a", defined("2", e.now), true)))) })
	same(t, int(told.Load()), 1)
}

// raceAcceptTool: of 32 calls that end one offer in two ways, one way wins.
func raceAcceptTool(t *testing.T, e *env) {
	one, two := defined("1", e.now), defined("2", e.now)
	e.seeTool(t, "a", one, true)
	e.seeTool(t, "a", two, true)
	var accepted, kept atomic.Int32
	compete(func(i int) {
		way, digest := &accepted, two.Digest
		if i%2 == 0 {
			way, digest = &kept, one.Digest
		}
		switch err := e.s.AcceptTool(e.ctx, toolServer, "a", digest, "ann", e.now); {
		case err == nil:
			way.Add(1)
		case !errors.Is(err, storage.ErrChanged):
			t.Error(err)
		}
	})
	if (accepted.Load() > 0) == (kept.Load() > 0) {
		t.Errorf("%d accepted the new definition, %d kept the old", accepted.Load(), kept.Load())
	}
}
