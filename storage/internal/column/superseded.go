package column

import (
	"encoding/json"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Of the grants of one person to one client for one resource those stay that were used last:
// KeptAnyway of them whatever their age, and up to KeptInUse that were used within InUse. A
// client that is installed at many places, or signs in again and again, has no more.
const (
	KeptAnyway = 8
	KeptInUse  = 64
	InUse      = 7 * 24 * time.Hour
)

// WalkBatches is how many batches one sweep walks over at most.
const WalkBatches = 1000

// Superseded is a grant that ended because of newer ones: whose, to which client and for
// which resource.
type Superseded struct{ UserID, ClientID, Resource string }

// SupersededEvents say how many grants have ended, and whose. They have no id yet.
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
