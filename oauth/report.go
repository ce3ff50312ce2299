package oauth

import (
	"net/http"
	"time"
)

// Report is what a resource server in another process tells its authorization server, of many requests at
// once. It authenticates as the client as which it introspects tokens. Nothing in it is secret.
type Report struct {
	ID string `json:"id"` // chosen at random: a report that is repeated counts once
	// SentAt is when it is sent, by the clock of the resource server, which the other times are of as well:
	// only how long ago something was counts.
	SentAt    time.Time  `json:"sent_at"`
	Decisions []Decision `json:"decisions,omitempty"`
	Calls     []Call     `json:"calls,omitempty"`
	Lost      int64      `json:"lost,omitempty"` // what could not be reported since the report before
}

// Reported is the answer to a Report.
type Reported struct {
	Taken    int  `json:"taken"`
	Refused  int  `json:"refused,omitempty"`  // not of this resource server, malformed, or beyond what is kept
	Repeated bool `json:"repeated,omitempty"` // the report was taken before
}

// MaxReported bounds the decisions and calls of one Report.
const MaxReported = 100

// Call is one call of a tool that has ended, as the audit keeps it.
type Call struct {
	At       time.Time `json:"at"`       // when it began
	Resource string    `json:"resource"` // the URL of the MCP server
	Tool     string    `json:"tool"`
	Outcome  string    `json:"outcome"`          // a word of the resource server, which does not change
	Digest   string    `json:"digest,omitempty"` // of the arguments: SHA-256 in hex of their JSON without spaces
	Issuer   string    `json:"iss,omitempty"`    // of the token of the caller, as what follows
	TokenID  string    `json:"jti,omitempty"`
	GrantID  string    `json:"gid,omitempty"`
	ClientID string    `json:"client_id,omitempty"`
	Subject  string    `json:"sub,omitempty"`
	Address  string    `json:"address,omitempty"` // of the client, without a port
	// Clearance is the id of the clearance that the call needs, or was let through by.
	Clearance string `json:"clearance,omitempty"`
}

// Sender is how a request looks by which clients are told apart.
type Sender struct {
	Address string   `json:"address,omitempty"` // of the client, without a port
	Agent   string   `json:"agent,omitempty"`   // the first product of User-Agent
	Headers []string `json:"headers,omitempty"` // the names of those that were sent
}

// Request is a request with nothing but what is known of its sender.
func (s Sender) Request(method string) *http.Request {
	h := http.Header{}
	for _, name := range s.Headers {
		h.Set(name, "")
	}
	h.Set("User-Agent", s.Agent)
	return &http.Request{Method: method, Header: h}
}
