package oauth

import (
	"net/http"
	"time"
)

// Report is a batch that a resource server in another process sends to its authorization server.
// The resource server authenticates with its introspection client. A report contains no secrets.
type Report struct {
	ID string `json:"id"` // random; a repeated report counts once
	// SentAt is the time of sending. All times are by the resource server's clock, so only their
	// age relative to SentAt is used.
	SentAt    time.Time  `json:"sent_at"`
	Decisions []Decision `json:"decisions,omitempty"`
	Calls     []Call     `json:"calls,omitempty"`
	Lost      int64      `json:"lost,omitempty"` // number of entries that could not be reported since the last report
}

// Reported is the answer to a Report.
type Reported struct {
	Taken    int  `json:"taken"`
	Refused  int  `json:"refused,omitempty"`  // unknown to this resource server, malformed, or over the limit
	Repeated bool `json:"repeated,omitempty"` // the report had been received before
}

// MaxReported is the maximum number of decisions and calls in one Report.
const MaxReported = 100

// Call is one finished tool call, as the audit log records it.
type Call struct {
	At       time.Time `json:"at"`       // the start of the call
	Resource string    `json:"resource"` // the URL of the MCP server
	Tool     string    `json:"tool"`
	Outcome  string    `json:"outcome"`          // a stable word chosen by the resource server
	Digest   string    `json:"digest,omitempty"` // SHA-256 in hex of the arguments, as JSON without spaces
	Issuer   string    `json:"iss,omitempty"`    // of the caller's token, as the following fields
	TokenID  string    `json:"jti,omitempty"`
	GrantID  string    `json:"gid,omitempty"`
	ClientID string    `json:"client_id,omitempty"`
	Subject  string    `json:"sub,omitempty"`
	Address  string    `json:"address,omitempty"` // of the client, without a port
	// Clearance is the id of the approval that the call requires or used.
	Clearance string `json:"clearance,omitempty"`
}

// Sender describes the sender of a request, to tell clients apart.
type Sender struct {
	Address string   `json:"address,omitempty"` // of the client, without a port
	Agent   string   `json:"agent,omitempty"`   // the first product of User-Agent
	Headers []string `json:"headers,omitempty"` // the names of the headers that were sent
}

// Request returns a request that carries only the Sender's properties.
func (s Sender) Request(method string) *http.Request {
	h := http.Header{}
	for _, name := range s.Headers {
		h.Set(name, "")
	}
	h.Set("User-Agent", s.Agent)
	return &http.Request{Method: method, Header: h}
}
