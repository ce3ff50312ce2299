package column

import (
	"encoding/json"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// TrustColumns are the columns of trusted issuer entries, in the order of ReadTrust.
const TrustColumns = "id, kind, issuer, rules, created_at, disabled_at"

// TrustValues returns the values of TrustColumns.
func TrustValues(e storage.TrustEntry) []any {
	rules, err := json.Marshal(e.TrustRules)
	if err != nil {
		panic("column: " + err.Error()) // strings, numbers and lists of strings always encode
	}
	return []any{
		e.ID, string(e.Kind), e.Issuer, string(rules), Millis(e.CreatedAt), OptMillis(e.DisabledAt),
	}
}

// TrustMark returns the values of TrustColumns for a mark.
func TrustMark(id string, now time.Time) []any {
	return TrustValues(storage.TrustEntry{ID: id, CreatedAt: now, DisabledAt: now})
}

// ReadTrust reads a row. An entry with rules that this version does not know is unreadable. To
// ignore such rules could accept more assertions than intended.
func ReadTrust(row interface{ Scan(dest ...any) error }) (e storage.TrustEntry, err error) {
	var kind, rules string
	var created int64
	var disabled *int64
	if err := row.Scan(&e.ID, &kind, &e.Issuer, &rules, &created, &disabled); err != nil {
		return e, err
	}
	e.Kind, e.CreatedAt, e.DisabledAt = storage.TrustKind(kind), Time(created), OptTime(disabled)
	if strictjson.Decode([]byte(rules), &e.TrustRules, strictjson.Limits{}) != nil {
		e.TrustRules, e.Unreadable = storage.TrustRules{}, true
	}
	return e, nil
}
