package oauth

import "time"

// OutcomeClearanceRequired is the outcome of a call that waits for the approval of a person.
const OutcomeClearanceRequired = "clearance_required"

// Decision is what a resource server has made of one request: that it refused it with 401 or 403, or let it
// through. It tells its authorization server, whose operator then sees where an attempt of a client ended.
// Nothing in it is secret.
type Decision struct {
	Reference   string    `json:"reference,omitempty"` // what the client was told; of a refusal
	At          time.Time `json:"at"`
	Resource    string    `json:"resource"`              // the URL of the MCP server at which the request came
	HTTPMethod  string    `json:"http_method,omitempty"` // such as "POST"
	Status      int       `json:"status,omitempty"`      // of a refusal; 0: it was let through
	Outcome     string    `json:"outcome"`               // a word of the resource server, which does not change
	Error       Code      `json:"error,omitempty"`       // of the challenge
	Description string    `json:"description,omitempty"` // what the client was told
	Reason      string    `json:"reason,omitempty"`      // more than that
	Scope       string    `json:"scope,omitempty"`       // that the challenge names
	Method      string    `json:"method,omitempty"`      // of MCP, such as "tools/call"
	Name        string    `json:"name,omitempty"`        // of the tool or prompt
	Scheme      string    `json:"scheme,omitempty"`      // of the Authorization header; "": it was not there
	Issuer      string    `json:"iss,omitempty"`         // of a token that was verified, as what follows
	ClientID    string    `json:"client_id,omitempty"`
	GrantID     string    `json:"grant_id,omitempty"`
	Subject     string    `json:"sub,omitempty"`
	// Sender and Claims are for a report of a resource server in another process: what the authorization server
	// would see of the request itself. Claims are what the token of a refused request says, unverified.
	Sender *Sender            `json:"sender,omitempty"`
	Claims *AccessTokenClaims `json:"claims,omitempty"`
}
