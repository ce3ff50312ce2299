// Package foreign reads metadata that other servers write. It skips a member that it does not understand, so
// that one such member never spoils the others (RFC 8414 §3.2).
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
