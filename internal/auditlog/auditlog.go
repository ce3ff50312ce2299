// Package auditlog keeps the audit as a Merkle log in the store: a Writer appends events in batches,
// each with a MAC, a Signer checks them and signs how far the log has come, and Verify finds entries
// that were removed, changed, moved, added or cut off. Package audit/verify says what entries, hashes
// and checkpoints are, and needs none of this to check them.
package auditlog

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Store is what the log needs of the store.
type Store interface {
	storage.AuditLog
	storage.AuditCheckpoints
	storage.SharedKeys
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

// entry returns an event as the store keeps it. An event that a command has left has the time at which it
// happened as an attribute. It is made before the answer to a request, so without a map or a sort.
func entry(now time.Time, event string, attrs []slog.Attr) storage.AuditEntry {
	var room [maxFields]verify.Field
	at, fields := fieldsOf(room[:0], now, attrs)
	return entryOf(at, event, fields)
}

// fieldsOf appends the fields of an event to fields, sorted by name, and returns its time: now, or its
// attribute "at".
func fieldsOf(fields []verify.Field, now time.Time, attrs []slog.Attr) (time.Time, []verify.Field) {
	at := now
	for _, a := range attrs[:min(len(attrs), maxFields)] {
		v := a.Value.Resolve()
		if a.Key == "at" && v.Kind() == slog.KindTime {
			at = v.Time()
			continue
		}
		if text := plain(v); text != "" && a.Key != verify.MACField {
			fields = with(fields, verify.Field{Name: a.Key, Text: text})
		}
	}
	return at, fields
}

// entryOf returns the entry of an event with fields that are sorted by name.
func entryOf(at time.Time, event string, fields []verify.Field) storage.AuditEntry {
	size := len(`{"at":"2006-01-02T15:04:05.000Z","event":"","fields":{}}`) + len(event)
	for _, f := range fields {
		size += len(f.Name) + len(f.Text) + len(`"":"",`)
	}
	return kept(at, event, value(fields, "grant"), value(fields, "user"),
		verify.AppendLeaf(make([]byte, 0, size), at, event, fields))
}

// with adds a field to those that are sorted by name, or replaces the one of its name.
func with(fields []verify.Field, f verify.Field) []verify.Field {
	i := len(fields)
	for i > 0 && fields[i-1].Name > f.Name {
		i--
	}
	if i > 0 && fields[i-1].Name == f.Name {
		fields[i-1] = f
		return fields
	}
	return slices.Insert(fields, i, f)
}

func value(fields []verify.Field, name string) string {
	for _, f := range fields {
		if f.Name == name {
			return f.Text
		}
	}
	return ""
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
	return kept(e.At, e.Event, e.Fields["grant"], e.Fields["user"], e.Leaf())
}

func kept(at time.Time, event, grant, person string, leaf []byte) storage.AuditEntry {
	return storage.AuditEntry{
		At: at.Truncate(time.Millisecond), Event: event, Grant: column(grant), Person: column(person), Leaf: leaf,
	}
}

// column is text that each database can hold: a batch must not fail for what a caller has sent.
func column(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}
