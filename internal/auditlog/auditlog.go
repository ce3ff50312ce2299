// Package auditlog keeps the audit as a Merkle log in the store: a Writer appends events in batches,
// a Signer signs how far the log has come, and Verify finds what was removed, changed, moved or cut
// off. What entries, hashes and checkpoints are is said by package audit/verify, which needs none of
// this to check them.
package auditlog

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Store is what the log needs of the store.
type Store interface {
	storage.AuditLog
	storage.AuditCheckpoints
}

// unproved are events that a caller who has proved nothing can cause as often as it likes. They are in
// the server's log; here they would only make room for themselves.
var unproved = []string{
	audit.AuthorizeRefused, audit.AuthorizePushed, audit.ClientRefused, audit.ClientAuthFailed, audit.ConnectRefused,
	audit.DeviceRequested, audit.DeviceUnknown, audit.LinkRefused, audit.ProviderAbandoned, audit.RemoteRequested,
	audit.SecurityEventRefused, audit.TokenRefused,
}

// Keeps reports whether an event is kept in the log.
func Keeps(event string) bool { return !slices.Contains(unproved, event) }

// stamp is how times are written in fields.
const stamp = "2006-01-02T15:04:05.000Z"

// maxFields bounds the fields of an entry; no event has half as many.
const maxFields = 64

// entry is an event as the log keeps it. An event that a command has left has the time at which it
// happened as an attribute.
func entry(now time.Time, event string, attrs []slog.Attr) verify.Entry {
	e := verify.Entry{At: now, Event: event, Fields: make(map[string]string, len(attrs))}
	for _, a := range attrs[:min(len(attrs), maxFields)] {
		v := a.Value.Resolve()
		if a.Key == "at" && v.Kind() == slog.KindTime {
			e.At = v.Time()
			continue
		}
		if text := plain(v); text != "" {
			e.Fields[a.Key] = text
		}
	}
	return e
}

// plain is a value as text.
func plain(v slog.Value) string {
	switch v.Kind() {
	case slog.KindString:
		return audit.Text(v.String())
	case slog.KindTime:
		return v.Time().UTC().Format(stamp)
	case slog.KindAny:
		b, err := json.Marshal(v.Any())
		if err != nil {
			return ""
		}
		return audit.Text(strings.Trim(string(b), `"`))
	default:
		return audit.Text(v.String())
	}
}

// record is an entry as the store keeps it.
func record(e verify.Entry) storage.AuditEntry {
	return storage.AuditEntry{
		At: e.At.Truncate(time.Millisecond), Event: e.Event, Grant: column(e.Fields["grant"]),
		Person: column(e.Fields["user"]), Leaf: e.Leaf(),
	}
}

// column is text that each database can hold: a batch must not fail for what a caller has sent.
func column(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}
