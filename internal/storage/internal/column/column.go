// Package column converts Go values to and from columns, the same for every backend: times as whole
// milliseconds, lists as JSON text, hashes as 32 bytes.
package column

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// UsedEvery is the precision of a client's last use. A row that was updated more recently is left
// alone. Otherwise every refresh of a busy client would write to one shared row.
const UsedEvery = time.Minute

// RevokedFor is how long a revoked grant is kept. During this time its tokens are refused as
// revoked and reuse is detected; later they are unknown.
const RevokedFor = 24 * time.Hour

// EndedFor is how long an ended session at an upstream provider is kept, with its reason and
// without its tokens.
const EndedFor = 30 * 24 * time.Hour

// EventsFor is how long an event of a command is kept, for a server to log.
const EventsFor = 30 * 24 * time.Hour

// OrphanedFor is how long a session at an upstream provider is kept even if no record depends on
// it.
const OrphanedFor = 24 * time.Hour

// HandedBackFor is how long handed-back tokens wait for a server to revoke them.
const HandedBackFor = 24 * time.Hour

// AbandonedFor is how long a departure is kept after its expiry, for reports about its outcome.
const AbandonedFor = time.Hour

// DecidedFor is how long a device's request is kept after its expiry, so that the device learns
// that it has expired.
const DecidedFor = time.Hour

// UnusedFor is how long an unredeemed code is kept after its expiry.
const UnusedFor = time.Hour

// Millis returns t in milliseconds since 1970.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// Time is the reverse of Millis.
func Time(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Before returns SQL that subtracts d from the time before it in a statement.
func Before(d time.Duration) string { return fmt.Sprintf(" - %d", d.Milliseconds()) }

// OptMillis returns t in milliseconds, nil (NULL) for the zero time.
func OptMillis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// OptTime is the reverse of OptMillis.
func OptTime(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return Time(*ms)
}

// OptText returns the text of a column, "" for NULL.
func OptText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Text is the reverse of OptText.
func Text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// List returns a list as JSON text, "[]" for none.
func List[S ~[]E, E any](l S) string {
	if len(l) == 0 {
		return "[]"
	}
	b, err := json.Marshal(l)
	if err != nil {
		panic("column: " + err.Error()) // lists of strings and plain structs always encode
	}
	return string(b)
}

// ParseList is the reverse of List; an empty list gives nil.
func ParseList[E any](text string) ([]E, error) {
	if text == "[]" {
		return nil, nil
	}
	var out []E
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("a list in the database is not JSON: %w", err)
	}
	return out, nil
}

// Hash returns a hash from its column.
func Hash(b []byte) (h storage.Hash, err error) {
	if len(b) != len(h) {
		return h, fmt.Errorf("a hash in the database has %d bytes", len(b))
	}
	return storage.Hash(b), nil
}

// NameKey returns the form of a user's name that is compared.
func NameKey(name string) string { return strings.ToLower(name) }

// NameKeyOf is NameKey for text that names a user by id or by name. It returns "", which matches no
// user, for an id, because an account of an earlier version may have it as a name.
func NameKeyOf(idOrName string) string {
	if identifier.Is(idOrName) {
		return ""
	}
	return NameKey(idOrName)
}
