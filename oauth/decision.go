package oauth

import "time"

// OutcomeClearanceRequired is the outcome of a call that waits for approval.
const OutcomeClearanceRequired = "clearance_required"

// Decision records how a resource server decided one request: refused with 401 or 403, or allowed.
// The resource server sends it to its authorization server, whose operator can then see where a
// client's attempt failed. It contains no secrets.
type Decision struct {
	Reference   string    `json:"reference,omitempty"` // as sent to the client, for a refusal
	At          time.Time `json:"at"`
	Resource    string    `json:"resource"`              // the URL of the MCP server that received the request
	HTTPMethod  string    `json:"http_method,omitempty"` // such as "POST"
	Status      int       `json:"status,omitempty"`      // of a refusal; 0 if the request was allowed
	Outcome     string    `json:"outcome"`               // a stable word chosen by the resource server
	Error       Code      `json:"error,omitempty"`       // in the challenge
	Description string    `json:"description,omitempty"` // as sent to the client
	Reason      string    `json:"reason,omitempty"`      // more detail than Description
	Scope       string    `json:"scope,omitempty"`       // named by the challenge
	Method      string    `json:"method,omitempty"`      // the MCP method, such as "tools/call"
	Name        string    `json:"name,omitempty"`        // the tool or prompt
	Scheme      string    `json:"scheme,omitempty"`      // of the Authorization header; "" if there was none
	Issuer      string    `json:"iss,omitempty"`         // of a verified token, as the following fields
	ClientID    string    `json:"client_id,omitempty"`
	GrantID     string    `json:"grant_id,omitempty"`
	Subject     string    `json:"sub,omitempty"`
	// Sender and Claims are for reports from another process. Sender describes the request, which
	// the authorization server did not see. Claims are the unverified claims of a refused token.
	Sender *Sender            `json:"sender,omitempty"`
	Claims *AccessTokenClaims `json:"claims,omitempty"`
}
