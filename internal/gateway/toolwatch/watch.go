// Package toolwatch notices when an MCP server describes a tool otherwise than it was accepted. What a
// model reads of a tool is an instruction to it: a server that people trust, and that changes a
// description afterwards, reaches past every scope (tool poisoning, "rug pull").
//
// A [Watch] sees each entry of the lists that the gateway passes on. The first definition of a tool is
// accepted as it is, or has to be accepted by an operator, by configuration. Another one is written
// down as offered, told of once, and, by configuration, holds the tool back from everybody until an
// operator has decided. What was accepted is in the store, the same for all replicas.
package toolwatch

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Mode is what becomes of a tool that is described otherwise than it was accepted.
type Mode string

// The modes.
const (
	Off     Mode = "off"      // definitions are not looked at
	Report  Mode = "report"   // it is told of, and passes
	Hold    Mode = "hold"     // it is told of, and held back; a new tool is accepted as it is
	HoldNew Mode = "hold_new" // a new tool is held back, too
)

// Holds reports whether tools are held back.
func (m Mode) Holds() bool { return m == Hold || m == HoldNew }

// Config is what a Watch needs. All of it is required.
type Config struct {
	Resource string
	Mode     Mode
	Store    storage.Tools
	// Changed is told of each definition that was not known and is not accepted, by one replica.
	Changed func(context.Context, storage.Tool)
	Logger  *slog.Logger
	Now     func() time.Time // by the clock of the store
}

const (
	flushEvery  = time.Second
	reloadEvery = 5 * time.Second // an operator may have decided
	askAgain    = time.Second     // before a tool is held for what this process does not know
	timeout     = 5 * time.Second
	offerEvery  = time.Minute // of one tool: a server may describe it to each caller otherwise
	maxName     = 256         // bytes
	maxKept     = 8 << 20     // bytes of entries that are compared without reading them
)

// Watch knows the tools of one MCP server. Nil watches nothing.
type Watch struct {
	c Config

	holding atomic.Int64 // how many of tools are held back

	mu      sync.RWMutex // guards the rest
	tools   map[string]*tool
	kept    int // bytes of entries
	unsaved map[string]storage.ToolDefinition
	loaded  time.Time
	full    bool // and it was told
}

// tool is what is known of a tool. A digest that is zero stands for none.
type tool struct {
	accepted, offered storage.Hash
	offeredAt         time.Time
	entry             []byte // seen last
}

// New returns a watch that knows what the store does, or nil for the mode Off.
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

// Why a tool is held back, for who calls it.
const (
	heldChanged = "The description of this tool has changed since it was accepted."
	heldNew     = "This tool has not been accepted yet."
)

// Held says why a tool is held back, "" for one that is not. One that was never seen is, where new ones are.
func (w *Watch) Held(name string) string {
	if w == nil || !w.c.Mode.Holds() || w.c.Mode == Hold && w.holding.Load() == 0 { // as it nearly always is
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

// held reports whether what is known of a tool is held back. mu is held.
func (w *Watch) held(t *tool) bool {
	if t == nil {
		return w.c.Mode == HoldNew
	}
	return w.c.Mode.Holds() && (t.offered != (storage.Hash{}) || t.accepted == (storage.Hash{}))
}

// See takes an entry of a list, and reports whether it may be shown.
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

// look takes an entry that is not the last one of its tool.
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

// untold is a tool beyond the number that is known. mu is held.
func (w *Watch) untold(name string) bool {
	if !w.full {
		w.full = true
		w.c.Logger.Warn("an MCP server has more tools than are watched, or longer names",
			"resource", w.c.Resource, "tools", len(w.tools), "tool", name[:min(len(name), maxName)])
	}
	return !w.c.Mode.Holds()
}

// keep keeps an entry, so that the next one like it costs a comparison. mu is held.
func (w *Watch) keep(t *tool, entry []byte) {
	w.kept -= len(t.entry)
	t.entry = nil
	if w.kept+len(entry) <= maxKept {
		t.entry = bytes.Clone(entry)
		w.kept += len(entry)
	}
}

// ask reads what the store knows, unless it was read a moment ago.
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

// reload reads what the store knows. What is not written yet stays.
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

// set takes what the store knows of a tool. mu is held.
func (w *Watch) set(row storage.Tool) {
	t := w.tools[row.Name]
	if t == nil {
		t = w.add(row.Name)
	}
	w.decide(t, row.Accepted.Digest, row.Offered.Digest)
}

// add begins to know a tool. mu is held.
func (w *Watch) add(name string) *tool {
	t := &tool{}
	w.tools[name] = t
	w.count(false, w.held(t))
	return t
}

// decide changes what is known of a tool. mu is held.
func (w *Watch) decide(t *tool, accepted, offered storage.Hash) {
	before := w.held(t)
	t.accepted, t.offered = accepted, offered
	w.count(before, w.held(t))
}

// count counts a tool that is held back now, or no longer. mu is held.
func (w *Watch) count(before, now bool) {
	switch {
	case now && !before:
		w.holding.Add(1)
	case before && !now:
		w.holding.Add(-1)
	}
}

// Run writes down what is seen, and reads what was decided, until ctx ends.
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
			_ = w.flush(context.WithoutCancel(ctx)) // what is lost is seen again
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

// flush writes what was seen, and tells of what was not known.
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
