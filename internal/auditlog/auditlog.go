// Package auditlog stores audit events as a Merkle log. A Writer appends events in batches, each
// event with a MAC. A Signer checks the entries and signs checkpoints. Verify detects entries that
// were removed, changed, moved, added or cut off. Package audit/verify defines entries, hashes and
// checkpoints, and checks them without this package.
package auditlog

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Store is the part of the store that the log uses.
type Store interface {
	storage.AuditLog
	storage.AuditCheckpoints
	storage.SharedKeys
}

// unproved lists the events that unauthenticated callers can cause at any rate. The audit log would
// fill with them, so only the server's log has them.
var unproved = []string{
	audit.AuthorizeRefused, audit.AuthorizePushed, audit.ClientRefused, audit.ClientAuthFailed, audit.ConnectRefused,
	audit.DeviceRequested, audit.DeviceUnknown, audit.LinkRefused, audit.ProviderAbandoned, audit.RemoteRequested,
	audit.SecurityEventRefused, audit.TokenRefused,
}

// Keeps reports whether the log stores an event.
func Keeps(event string) bool { return !slices.Contains(unproved, event) }

const stamp = "2006-01-02T15:04:05.000Z"

// maxFields limits the fields of an entry. Every event has fewer than half as many.
const maxFields = 64

// entry returns an event in the form of the store. It runs while a request waits, so it uses no map
// or sort.
func entry(now time.Time, event string, attrs []slog.Attr) storage.AuditEntry {
	var room [maxFields]verify.Field
	at, fields := fieldsOf(room[:0], now, attrs)
	return entryOf(at, event, fields)
}

// fieldsOf appends the fields of an event, sorted by name, and returns its time: the attribute "at"
// of events that commands stored, or now.
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

func entryOf(at time.Time, event string, fields []verify.Field) storage.AuditEntry {
	size := len(`{"at":"2006-01-02T15:04:05.000Z","event":"","fields":{}}`) + len(event)
	for _, f := range fields {
		size += len(f.Name) + len(f.Text) + len(`"":"",`)
	}
	return kept(at, event, value(fields, "grant"), value(fields, "user"),
		verify.AppendLeaf(make([]byte, 0, size), at, event, fields))
}

// with inserts a field into fields sorted by name, or replaces the field of that name.
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

func plain(v slog.Value) string {
	switch v.Kind() {
	case slog.KindString:
		return request.Text(v.String())
	case slog.KindTime:
		return v.Time().UTC().Format(stamp)
	case slog.KindAny:
		b, err := json.Marshal(v.Any())
		if err != nil {
			return ""
		}
		return request.Text(strings.Trim(string(b), `"`))
	default:
		return request.Text(v.String())
	}
}

// record converts a parsed entry to the form of the store.
func record(e verify.Entry) storage.AuditEntry {
	return kept(e.At, e.Event, e.Fields["grant"], e.Fields["user"], e.Leaf())
}

func kept(at time.Time, event, grant, person string, leaf []byte) storage.AuditEntry {
	return storage.AuditEntry{
		At: at.Truncate(time.Millisecond), Event: event, Grant: column(grant), Person: column(person), Leaf: leaf,
	}
}

// column removes NUL and replaces invalid UTF-8: a database may reject them, and input from callers
// must not fail a batch.
func column(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}
