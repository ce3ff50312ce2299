package column

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// FileBatch is how many clients are filed at a time.
const FileBatch = 500

// IsHeld returns the condition that the application of a client is held.
func IsHeld(clientID string) string {
	return fmt.Sprintf("EXISTS (SELECT 1 FROM application_holds h WHERE h.application = %[1]s"+
		" OR h.application = (SELECT f.application FROM clients f WHERE f.id = %[1]s))", clientID)
}

// Statements that file clients. A replica of an earlier version files no clients, so they are filed
// before the application is needed.
const (
	// Unfiled selects clients to be filed.
	Unfiled = "SELECT " + ApplicationRead + " FROM clients WHERE application IS NULL AND deleted_at IS NULL LIMIT "

	// FiledColumns are the columns of an application, without its hold and merged keys.
	FiledColumns = "a.application, coalesce(c.name, a.name), coalesce(c.source, ''), coalesce(c.redirect_uris, '[]'), " +
		"a.registrations, a.created_at, a.last_used_at"

	// filedClients selects the applications of clients, heldAlone the held ones without clients.
	filedClients = `SELECT application, count(*) AS registrations, min(created_at) AS created_at,
	max(last_used_at) AS last_used_at, max(id) AS id, '' AS name FROM clients
	WHERE deleted_at IS NULL AND source <> '` + string(storage.SourceConfig) + `' AND `
	heldAlone = `SELECT h.application, 0 AS registrations, h.at AS created_at, NULL AS last_used_at,
	NULL AS id, h.name FROM application_holds h
	WHERE NOT EXISTS (SELECT 1 FROM clients f WHERE f.application = h.application AND f.deleted_at IS NULL) AND `
)

// FiledKeyRead is what tells as which application a client counts.
const FiledKeyRead = ApplicationRead + ", coalesce(application, '')"

// FiledKeyRow reads FiledKeyRead.
type FiledKeyRow struct {
	ApplicationRow
	filed string
}

// Dest is what to scan into.
func (r *FiledKeyRow) Dest() []any { return append(r.ApplicationRow.Dest(), &r.filed) }

// FiledKey is the key under which a client is filed, or is to be filed.
type FiledKey struct{ ClientID, Key string }

// FiledKey is the record that was read.
func (r *FiledKeyRow) FiledKey() (FiledKey, error) {
	c, err := r.Client()
	return FiledKey{c.ID, cmp.Or(r.filed, c.Application())}, err
}

// CountsAs is an application that was merged into another one.
type CountsAs struct{ Key, As string }

// ApplicationKeys returns the keys of the applications that clients count as.
func ApplicationKeys(clientIDs []string, filed []FiledKey, merged []CountsAs) map[string]string {
	out, as := make(map[string]string, len(clientIDs)), make(map[string]string, len(merged))
	for _, m := range merged {
		as[m.Key] = m.As
	}
	for _, id := range clientIDs {
		out[id] = id
	}
	for _, f := range filed {
		out[f.ClientID] = f.Key
	}
	for id, key := range out {
		out[id] = cmp.Or(as[key], key)
	}
	return out
}

// KeysOf returns the keys that clients have before anything is merged.
func KeysOf(clientIDs []string, filed []FiledKey) []string {
	return slices.Sorted(maps.Values(ApplicationKeys(clientIDs, filed, nil)))
}

// SameKey returns the clients that count as the application with a key, by id.
func SameKey(keys map[string]string, key string) (clientIDs []string) {
	for id, of := range keys {
		if of == key {
			clientIDs = append(clientIDs, id)
		}
	}
	slices.Sort(clientIDs)
	return clientIDs
}

// Filed is the statement for applications, by conditions on clients and on holds. Limit is a parameter.
func Filed(clients, holds, limit string) string {
	return "SELECT " + FiledColumns + " FROM (SELECT * FROM (" + filedClients + clients +
		" GROUP BY application ORDER BY application LIMIT " + limit + ") x UNION ALL " + heldAlone + holds +
		") a LEFT JOIN clients c ON c.id = a.id ORDER BY a.application LIMIT " + limit
}

// FiledRow reads FiledColumns.
type FiledRow struct {
	a                 storage.FiledApplication
	source, redirects string
	created           int64
	used              *int64
}

func (r *FiledRow) Dest() []any {
	return []any{&r.a.Key, &r.a.Name, &r.source, &r.redirects, &r.a.Registrations, &r.created, &r.used}
}

func (r *FiledRow) Application() (a storage.FiledApplication, err error) {
	a = r.a
	a.Source, a.CreatedAt, a.LastUsedAt = storage.ClientSource(r.source), Time(r.created), OptTime(r.used)
	a.RedirectURIs, err = ParseList[string](r.redirects)
	return a, err
}

// HoldRead are the columns that are read of a hold.
const HoldRead = "h.application, h.name, h.blocked, h.held_by, h.at"

// HoldRow reads HoldRead.
type HoldRow struct {
	h           storage.Hold
	blocked, at int64
}

func (r *HoldRow) Dest() []any {
	return []any{&r.h.Application, &r.h.Name, &r.blocked, &r.h.By, &r.at}
}

func (r *HoldRow) Hold() storage.Hold {
	h := r.h
	h.Blocked, h.At = r.blocked != 0, Time(r.at)
	return h
}

// HoldValues returns the values of a hold in the order of HoldRead.
func HoldValues(h storage.Hold) []any {
	blocked := int64(0)
	if h.Blocked {
		blocked = 1
	}
	return []any{h.Application, h.Name, blocked, h.By, Millis(h.At)}
}

// AllHolds selects the holds, and a hold for each key merged into a held application.
const AllHolds = "SELECT " + HoldRead + ` FROM application_holds h UNION ALL
SELECT a.application, h.name, h.blocked, h.held_by, h.at FROM application_aliases a JOIN application_holds h ON h.application = a.counts_as`
