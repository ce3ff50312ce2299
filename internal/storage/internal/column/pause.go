package column

import (
	"math"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// PauseRead are the columns of a pause in the order of PauseRow.Dest.
const PauseRead = "id, user_id, application, resource, client_id, client_name, paused_at"

// ReadPauses begins a statement that finds pauses.
const ReadPauses = "SELECT " + PauseRead + " FROM pauses WHERE paused_at IS NOT NULL AND "

// TurnFor is how long the row is kept that makes an approval and a pause wait for each other. It
// only has to outlive their transactions.
const TurnFor = time.Hour

// PauseRow reads PauseRead.
type PauseRow struct {
	p  storage.Pause
	at int64
}

func (r *PauseRow) Dest() []any {
	return []any{
		&r.p.ID, &r.p.UserID, &r.p.Application, &r.p.Resource, &r.p.ClientID, &r.p.ClientName, &r.at,
	}
}

func (r *PauseRow) Pause() storage.Pause {
	r.p.At = Time(r.at)
	return r.p
}

// ReadPause reads PauseRead.
func ReadPause(row interface{ Scan(dest ...any) error }) (storage.Pause, error) {
	var r PauseRow
	err := row.Scan(r.Dest()...)
	return r.Pause(), err
}

// PauseValues returns the values of a new pause of an application, in the order of PauseRead. If the client of the
// grant is not the application's, no client began the pause, and the key is in its place.
func PauseValues(g storage.Grant, app Application, now time.Time) []any {
	began := g.ClientID
	if !slices.Contains(app.Clients, began) {
		began = app.Key
	}
	return []any{
		storage.PauseID(g.UserID, app.Key, g.Resource), g.UserID, app.Key, g.Resource, began, app.Name, Millis(now),
	}
}

// PauseLimit returns how many pauses a person may have when the ith of the pauses of merged applications is stored.
// There must be room for the first.
func PauseLimit(i int) int {
	if i > 0 {
		return math.MaxInt32
	}
	return storage.MaxPauses
}

// StoredPause are the values of a pause in the order of PauseRead.
func StoredPause(p storage.Pause) []any {
	return []any{p.ID, p.UserID, p.Application, p.Resource, p.ClientID, p.ClientName, Millis(p.At)}
}

// MissingPauses returns the pauses by which each of some applications is paused where one of them is. No client began
// them, so they have the application in its place.
func MissingPauses(keys []string, all []storage.Pause) (missing []storage.Pause) {
	is := map[string]bool{}
	for _, p := range all {
		is[p.ID] = true
	}
	for _, p := range all {
		for _, key := range slices.Sorted(slices.Values(keys)) {
			p.ID, p.Application, p.ClientID = storage.PauseID(p.UserID, key, p.Resource), key, key
			if !is[p.ID] {
				is[p.ID] = true
				missing = append(missing, p)
			}
		}
	}
	return missing
}
