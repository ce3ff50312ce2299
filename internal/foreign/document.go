// Package foreign reads documents that other servers write: metadata and key sets. It skips an element that
// it does not understand, so that one such element never spoils the others (RFC 7517 §5, RFC 8414 §3.2).
package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Metadata reads a JSON object into out. A member of another type than the field of out counts as missing:
// callers check the members that they need.
func Metadata(raw []byte, out any) error {
	err := json.Unmarshal(raw, out)
	if errors.As(err, new(*json.UnmarshalTypeError)) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil // Unmarshal skips such a member, and reads the rest
	}
	return err
}
