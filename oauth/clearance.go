package oauth

import (
	"encoding/json"
	"time"
)

// ScopeClearance is the prefix of the scope that sends a client and its user to the page of one
// tool call approval: "clearance:" and its id. No token ever has such a scope.
const ScopeClearance = "clearance:"

// ClearanceLifetime limits the time from the request for an approval to its use, including the wait
// for the user.
const ClearanceLifetime = 5 * time.Minute

// Values of ClearanceDemand.By.
const (
	ClearanceByPerson = "person" // the user for whom the call is made
	ClearanceByOther  = "other"  // another user: one of ClearanceDemand.Approvers, or by default an administrator
)

// ClearanceDemand is a resource server's request for approval of one tool call: permission to call
// this tool with these arguments, once.
type ClearanceDemand struct {
	Resource  string          // the URL that the token is for
	Tool      string          // its name in tools/call
	Arguments json.RawMessage // as received: a JSON object, or empty
	By        string          // ClearanceByPerson or ClearanceByOther
	Approvers []string        // names of users who may approve, for ClearanceByOther
	// ACR and MaxAge state how and when the approver must have authenticated (RFC 9470). MaxAge is
	// in whole seconds; 0 means no limit.
	ACR    []string
	MaxAge time.Duration
}

// Clearance is the answer to a ClearanceDemand.
type Clearance struct {
	ID string // correlates the audit logs of both sides; not a secret, and grants nothing
	// Cleared means that the call may be carried out. This answer uses up the approval.
	Cleared bool
	// Refused means that the approver denied the call. The same call is refused until Expires,
	// without asking again.
	Refused bool
	URL     string    // the approval page; empty if Cleared or Refused
	Expires time.Time // when the wait for the approval ends
}
