package auditsink

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// State describes the queue of a log destination.
type State struct {
	ID      string
	Waiting int64     // entries not yet delivered
	Oldest  time.Time // of them; zero if the queue is empty
	Lost    int64     // entries that will never be delivered
	Failed  string    // the error of the last delivery, or ""
}

// Age returns how long the oldest entry has waited.
func (s State) Age(now time.Time) time.Duration {
	if s.Oldest.IsZero() {
		return 0
	}
	return max(now.Sub(s.Oldest), 0)
}

// States returns the state of each destination. It omits those that no server has opened yet.
func States(ctx context.Context, store Store, sinks []Config) (out []State, err error) {
	known, err := store.AuditSinks(ctx)
	if err != nil {
		return nil, err
	}
	head, err := store.AuditHead(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, s := range known {
		if !slices.ContainsFunc(sinks, func(c Config) bool { return c.ID == s.Name }) {
			continue // no longer configured
		}
		state := State{ID: s.Name, Waiting: max(head.Size-s.Next, 0), Lost: s.Lost, Failed: s.Failed}
		if state.Waiting > 0 {
			q := storage.AuditQuery{From: s.Next, Below: head.Size, Limit: 1}
			next, err := store.AuditEntries(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, e := range next {
				state.Oldest = e.At
			}
		}
		out = append(out, state)
	}
	return out, nil
}
