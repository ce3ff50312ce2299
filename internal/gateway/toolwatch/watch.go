// Package toolwatch detects when an MCP server changes the definition of an accepted tool. A tool's
// description is an instruction to the model. A server that changes it after users trust it
// bypasses every scope (tool poisoning, "rug pull").
//
// A [Watch] sees each entry of the lists that the gateway passes on. The first definition of a tool
// is accepted automatically or, if so configured, by an operator. A different definition is stored
// as offered and reported once. If so configured, it also blocks the tool for everyone until an
// operator decides. The store holds the accepted definitions for all replicas.
package toolwatch

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Mode selects the handling of a tool whose definition differs from the accepted one.
type Mode string

// These are the modes.
const (
	Off     Mode = "off"      // ignore definitions
	Report  Mode = "report"   // report the change and let it pass
	Hold    Mode = "hold"     // report the change and hold the tool; a new tool is accepted
	HoldNew Mode = "hold_new" // like Hold, and also hold new tools
)

// Holds reports whether the mode holds tools.
func (m Mode) Holds() bool { return m == Hold || m == HoldNew }

// Config configures a Watch. All fields are required.
type Config struct {
	Resource string
	Mode     Mode
	Store    storage.Tools
	// Changed is called for each new definition that is not accepted, by one replica.
	Changed func(context.Context, storage.Tool)
	Logger  *slog.Logger
	Now     func() time.Time // the store's clock
}

const (
	flushEvery  = time.Second
	reloadEvery = 5 * time.Second // an operator may have decided
	askAgain    = time.Second     // minimum time between reads of the store before a tool is held
	timeout     = 5 * time.Second
	offerEvery  = time.Minute // per tool, because a server may send each caller another definition
	maxName     = 256         // bytes
	maxKept     = 8 << 20     // bytes of cached entries for quick comparison
)

// Watch watches the tools of one MCP server. A nil Watch watches nothing.
type Watch struct {
	c Config

	holding atomic.Int64 // number of held tools

	mu      sync.RWMutex // guards the fields below
	tools   map[string]*tool
	kept    int // bytes of cached entries
	unsaved map[string]storage.ToolDefinition
	loaded  time.Time
	full    bool // the tool limit is reached, and this was logged
}

// tool is the state of a tool. A zero digest means no definition.
type tool struct {
	accepted, offered storage.Hash
	offeredAt         time.Time
	entry             []byte // the entry seen last
}

// New returns a watch with the state from the store, or nil for the mode Off.
func New(ctx context.Context, c Config) (*Watch, error) {
	if c.Mode == Off {
		return nil, nil
	}
	if c.Mode == "" {
		c.Mode = Report
	}
	w := &Watch{c: c, tools: map[string]*tool{}, unsaved: map[string]storage.ToolDefinition{}}
	return w, w.reload(ctx)
}

// These are the reasons for callers why a tool is held.
const (
	heldChanged = "The description of this tool has changed since it was accepted."
	heldNew     = "This tool has not been accepted yet."
)

// Held returns the reason why a tool is held, or "". In mode HoldNew an unknown tool is also held.
func (w *Watch) Held(name string) string {
	if w == nil || !w.c.Mode.Holds() || w.c.Mode == Hold && w.holding.Load() == 0 { // the usual case
		return ""
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	switch t := w.tools[name]; {
	case !w.held(t):
		return ""
	case t == nil || t.accepted == (storage.Hash{}):
		return heldNew
	}
	return heldChanged
}

// held reports whether a tool in state t is held. The caller holds mu.
func (w *Watch) held(t *tool) bool {
	if t == nil {
		return w.c.Mode == HoldNew
	}
	return w.c.Mode.Holds() && (t.offered != (storage.Hash{}) || t.accepted == (storage.Hash{}))
}

// See records an entry of a list and reports whether it may be shown.
func (w *Watch) See(ctx context.Context, name string, entry []byte) bool {
	if w == nil {
		return true
	}
	w.mu.RLock()
	t := w.tools[name]
	known, held := t != nil && bytes.Equal(t.entry, entry), w.held(t)
	w.mu.RUnlock()
	if known {
		return !held
	}
	return w.look(ctx, name, entry)
}

// look handles an entry that differs from the last one of its tool.
func (w *Watch) look(ctx context.Context, name string, entry []byte) bool {
	text, digest := canonical(entry)
	if w.c.Mode.Holds() && !w.agrees(name, digest) {
		w.ask(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tools[name]
	if t == nil {
		if len(name) > maxName || len(w.tools) >= storage.MaxTools {
			return w.untold(name)
		}
		t = w.add(name)
		if w.c.Mode != HoldNew {
			w.decide(t, digest, t.offered)
			w.unsaved[name] = storage.ToolDefinition{Digest: digest, Text: text, At: w.c.Now()}
		}
	}
	w.keep(t, entry)
	if digest != t.accepted && digest != t.offered {
		now := w.c.Now()
		if t.offered == (storage.Hash{}) || now.Sub(t.offeredAt) >= offerEvery {
			t.offeredAt = now
			w.decide(t, t.accepted, digest)
			w.unsaved[name] = storage.ToolDefinition{Digest: digest, Text: text, At: w.c.Now()}
		}
	}
	return !w.held(t)
}

// agrees reports whether the definition is the accepted one, as far as this process knows.
func (w *Watch) agrees(name string, digest storage.Hash) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	t := w.tools[name]
	return t != nil && t.accepted == digest
}

// untold handles a tool that cannot be stored because of a limit. It reports whether the tool may
// be shown. The caller holds mu.
func (w *Watch) untold(name string) bool {
	if !w.full {
		w.full = true
		w.c.Logger.Warn("an MCP server has more tools than are watched, or longer names",
			"resource", w.c.Resource, "tools", len(w.tools), "tool", name[:min(len(name), maxName)])
	}
	return !w.c.Mode.Holds()
}

// keep caches an entry, so that an identical one can be recognized by comparison. The caller holds
// mu.
func (w *Watch) keep(t *tool, entry []byte) {
	w.kept -= len(t.entry)
	t.entry = nil
	if w.kept+len(entry) <= maxKept {
		t.entry = bytes.Clone(entry)
		w.kept += len(entry)
	}
}

// ask reads the store, unless it was read a moment ago.
func (w *Watch) ask(ctx context.Context) {
	w.mu.RLock()
	recent := w.c.Now().Sub(w.loaded) < askAgain
	w.mu.RUnlock()
	if recent {
		return
	}
	if err := w.reload(context.WithoutCancel(ctx)); err != nil {
		w.c.Logger.WarnContext(ctx, "the accepted tools of an MCP server cannot be read",
			"resource", w.c.Resource, "error", err)
	}
}

// reload reads the store. Unsaved definitions are kept.
func (w *Watch) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all, err := w.c.Store.Tools(ctx, w.c.Resource)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loaded = w.c.Now()
	for _, row := range all {
		if _, ours := w.unsaved[row.Name]; !ours {
			w.set(row)
		}
	}
	return nil
}

// set updates a tool from the store. The caller holds mu.
func (w *Watch) set(row storage.Tool) {
	t := w.tools[row.Name]
	if t == nil {
		t = w.add(row.Name)
	}
	w.decide(t, row.Accepted.Digest, row.Offered.Digest)
}

// add adds a tool. The caller holds mu.
func (w *Watch) add(name string) *tool {
	t := &tool{}
	w.tools[name] = t
	w.count(false, w.held(t))
	return t
}

// decide changes the state of a tool. The caller holds mu.
func (w *Watch) decide(t *tool, accepted, offered storage.Hash) {
	before := w.held(t)
	t.accepted, t.offered = accepted, offered
	w.count(before, w.held(t))
}

// count updates the number of held tools. The caller holds mu.
func (w *Watch) count(before, now bool) {
	switch {
	case now && !before:
		w.holding.Add(1)
	case before && !now:
		w.holding.Add(-1)
	}
}

// Run saves new definitions and reads decisions until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	if w == nil {
		return
	}
	flush, reload := time.NewTicker(flushEvery), time.NewTicker(reloadEvery)
	defer flush.Stop()
	defer reload.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			_ = w.flush(context.WithoutCancel(ctx)) // lost definitions will be seen again
			return
		case <-flush.C:
			err = w.flush(ctx)
		case <-reload.C:
			err = w.reload(ctx)
		}
		if err != nil && ctx.Err() == nil {
			w.c.Logger.WarnContext(ctx, "the tools of an MCP server cannot be written down, or read",
				"resource", w.c.Resource, "error", err)
		}
	}
}

// flush saves the definitions seen, and reports the new ones.
func (w *Watch) flush(ctx context.Context) error {
	w.mu.RLock()
	batch := make(map[string]storage.ToolDefinition, len(w.unsaved))
	for name, d := range w.unsaved {
		batch[name] = d
	}
	w.mu.RUnlock()
	if len(batch) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fresh, err := w.c.Store.SeeTools(ctx, w.c.Resource, batch, w.c.Mode != HoldNew)
	if err != nil {
		return err
	}
	w.mu.Lock()
	for name, d := range batch {
		if w.unsaved[name].Digest == d.Digest {
			delete(w.unsaved, name)
		}
	}
	for _, row := range fresh {
		if _, ours := w.unsaved[row.Name]; !ours {
			w.set(row)
		}
	}
	w.mu.Unlock()
	for _, row := range fresh {
		if row.IsOffered() {
			w.c.Changed(ctx, row)
		}
	}
	return nil
}
