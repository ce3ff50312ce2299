package column

import (
	"encoding/json"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The limits on the grants of one user to one client for one resource. The last used KeptAnyway
// stay regardless of age, and up to KeptInUse that were used within InUse. They limit a client that
// is installed in many places or signs in again and again.
const (
	KeptAnyway = 8
	KeptInUse  = 64
	InUse      = 7 * 24 * time.Hour
)

const (
	// WalkBatches is the maximum number of batches in one sweep.
	WalkBatches = 1000
	// WalkStep is the maximum number of grants that one batch of a walk passes. It is less than SupersedeReads minus
	// KeptInUse, so that a batch ends as many grants of one user as it passes, and none are left behind.
	WalkStep = 500
	// SupersedeReads is how many grants of one user to one client a batch reads, as text.
	SupersedeReads = "1000"
)

// Superseded is a grant that ended because of newer ones: its user, client and resource.
type Superseded struct{ UserID, ClientID, Resource string }

// SupersededEvents returns events with the number of ended grants of each user, client and
// resource. The events have no id yet.
func SupersededEvents(ended []Superseded, now int64) (out []storage.Event) {
	counts := make(map[Superseded]int)
	for _, s := range ended {
		counts[s]++
	}
	for s, n := range counts {
		fields, err := json.Marshal(map[string]any{
			"user": s.UserID, "client_id": s.ClientID, "resource": s.Resource, "grants": n,
		})
		if err != nil {
			panic("column: " + err.Error()) // strings and a number always encode
		}
		out = append(out, storage.Event{At: Time(now), Name: storage.GrantSuperseded, Fields: fields})
	}
	return out
}
