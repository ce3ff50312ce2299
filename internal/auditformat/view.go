package auditformat

import (
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// View is an entry in JSON, as audit list shows it.
type View struct {
	Index    int64             `json:"index"`
	At       time.Time         `json:"at"`
	Event    string            `json:"event"`
	Grant    string            `json:"grant,omitempty"`
	Person   string            `json:"person,omitempty"`
	ClientID string            `json:"client_id,omitempty"`
	Resource string            `json:"resource,omitempty"`
	Tool     string            `json:"tool,omitempty"`
	Outcome  string            `json:"outcome,omitempty"`
	Leaf     verify.Hash       `json:"leaf"` // its hash
	Unproven string            `json:"unproven,omitempty" jsonschema:"why the entry is not proven; absent when it is"`
	Fields   map[string]string `json:"fields"`
}

// ViewOf returns an entry for JSON.
func ViewOf(e Entry) View {
	f := e.Fields
	return View{
		Index: e.Index, At: e.At, Event: e.Event, Grant: f["grant"], Person: f["user"], ClientID: f["client_id"],
		Resource: f["resource"], Tool: f["tool"], Outcome: f["outcome"], Leaf: e.Leaf,
		Unproven: e.Unproven, Fields: f,
	}
}
