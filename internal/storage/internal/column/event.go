package column

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// EventRow reads id, at, name and fields of an event.
type EventRow struct {
	e      storage.Event
	at     int64
	fields string
}

func (r *EventRow) Dest() []any { return []any{&r.e.ID, &r.at, &r.e.Name, &r.fields} }

func (r *EventRow) Event() storage.Event {
	e := r.e
	e.At, e.Fields = Time(r.at), []byte(r.fields)
	return e
}

// SortEvents sorts events, because an UPDATE returns its rows in any order.
func SortEvents(events []storage.Event) {
	slices.SortFunc(events, func(a, b storage.Event) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID))
	})
}
