package storage

import "encoding/json"

// Demands are the security requirements in a client's metadata. A request that does not meet them
// is refused.
type Demands struct {
	// PushedRequests: its authorization requests must be pushed (RFC 9126 §6).
	PushedRequests bool `json:"require_pushed_authorization_requests"`
	// BoundTokens: all its tokens must be bound to a key (RFC 9449 §5.2).
	BoundTokens bool `json:"dpop_bound_access_tokens"`
}

// Demands reads the demands from Metadata, which this server wrote after checking it.
func (c *Client) Demands() (d Demands) {
	if c.Metadata != nil {
		json.Unmarshal(c.Metadata, &d)
	}
	return d
}
