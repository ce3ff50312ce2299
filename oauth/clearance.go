package oauth

import (
	"encoding/json"
	"time"
)

// ScopeClearance begins the scope by which a challenge sends a client, and with it its person, to the
// page of one clearance: "clearance:" and its id. No token ever has it.
const ScopeClearance = "clearance:"

// ClearanceLifetime is how long a clearance is waited for, and how long it may then be used. From the
// first request to the last use it is never longer.
const ClearanceLifetime = 5 * time.Minute

// Who gives a clearance.
const (
	ClearanceByPerson = "person" // the person for whom the call is made
	ClearanceByOther  = "other"  // another person: of ClearanceDemand.Approvers, else an administrator
)

// ClearanceDemand is what a resource server demands before one call is carried out: the permission of a person
// for this tool with these arguments, once.
type ClearanceDemand struct {
	Resource  string          // the URL that the token is for
	Tool      string          // by its name in tools/call
	Arguments json.RawMessage // as they came: a JSON object, or nothing
	By        string          // ClearanceByPerson, ClearanceByOther
	Approvers []string        // the names of people who may, for ClearanceByOther
	// ACR and MaxAge say how the person must have proved who they are when they give it (RFC 9470).
	// MaxAge has whole seconds; 0: at any time.
	ACR    []string
	MaxAge time.Duration
}

// Clearance is the answer to a demand.
type Clearance struct {
	ID string // names it in the audit of both sides; no secret, and of no use to who has it
	// Cleared: the call may be carried out. The clearance is used up by this answer.
	Cleared bool
	// Refused: the person has said no. The same call is refused until Expires, without asking again.
	Refused bool
	URL     string    // of the page at which the person gives their permission; empty if Cleared or Refused
	Expires time.Time // of the wait for it
}
