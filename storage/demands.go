package storage

import "encoding/json"

// Demands is what a client demands of us, by its metadata: where it makes its own requests safer, a
// request that is less is refused.
type Demands struct {
	// PushedRequests: its authorization requests have to be pushed (RFC 9126 §6).
	PushedRequests bool `json:"require_pushed_authorization_requests"`
	// BoundTokens: all of its tokens have to be bound to a key (RFC 9449 §5.2).
	BoundTokens bool `json:"dpop_bound_access_tokens"`
}

// Demands reads them from Metadata. What is there was made by us, and has been checked.
func (c *Client) Demands() (d Demands) {
	if c.Metadata != nil {
		json.Unmarshal(c.Metadata, &d)
	}
	return d
}
