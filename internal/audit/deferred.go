package audit

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Deferred returns a recorder for commands. It stores each event for a server to log (see Collect).
// If the store fails, it logs a warning and the event itself.
func Deferred(store storage.Events, log *slog.Logger) *Recorder {
	return &Recorder{log: log, store: store, unkept: new(atomic.Bool)}
}

// Unkept reports whether a Deferred recorder failed to store an event.
func (r *Recorder) Unkept() bool { return r != nil && r.unkept != nil && r.unkept.Load() }

// leave stores an event, and reports whether it succeeded.
func (r *Recorder) leave(ctx context.Context, event string, attrs []slog.Attr) bool {
	fields := map[string]any{}
	for _, a := range attrs {
		fields[a.Key] = a.Value.Any()
	}
	body, err := json.Marshal(fields)
	if err == nil {
		// Store the event even if the command was interrupted: it has acted.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		err = r.store.PutEvent(ctx, storage.Event{ID: secrets.ID("evt_"), At: time.Now(), Name: event, Fields: body})
	}
	if err != nil {
		r.unkept.Store(true)
		r.log.WarnContext(ctx, "an event cannot be left for the server's log", "event", event, "reason", err.Error())
	}
	return err == nil
}

const (
	storeTimeout = 5 * time.Second
	collectBatch = 100
)

// Collect records stored events with their original times. Only one server records each event, but
// if it ends before it confirms this to the store, another one records the event again.
func (r *Recorder) Collect(ctx context.Context, store storage.Events, now time.Time) error {
	if r == nil || r.log == nil {
		return nil // left for another server
	}
	for {
		events, err := store.TakeEvents(ctx, collectBatch, now)
		if err != nil || len(events) == 0 {
			return err
		}
		recorded, pending := Awaited(ctx)
		ids := make([]string, len(events))
		for i, e := range events {
			r.Record(recorded, e.Name, append(left(e), slog.Time("at", e.At))...)
			ids[i] = e.ID
		}
		if err := pending.wait(ctx, storeTimeout); err != nil {
			return err
		}
		if err := store.LoggedEvents(ctx, ids, now); err != nil || len(events) < collectBatch {
			return err
		}
	}
}

// left returns the attributes of a stored event.
func left(e storage.Event) []slog.Attr {
	var fields map[string]any
	if err := json.Unmarshal(e.Fields, &fields); err != nil {
		return []slog.Attr{slog.String("reason", "the fields of this event cannot be read")}
	}
	out := make([]slog.Attr, 0, len(fields)+1)
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, slog.Any(k, fields[k]))
	}
	return out
}
