package storage

import "encoding/json"

// Demands is what a client demands of us, by its metadata: where it makes its own requests safer, a
// request that is less is refused.
type Demands struct {
	// PushedRequests: its authorization requests have to be pushed (RFC 9126 §6).
	PushedRequests bool `json:"require_pushed_authorization_requests"`
}

// Demands reads them from Metadata. What is there was made by us, and has been checked.
func (c *Client) Demands() (d Demands) {
	if c.Metadata != nil {
		json.Unmarshal(c.Metadata, &d)
	}
	return d
}
