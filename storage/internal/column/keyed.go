package column

import "github.com/mcp-authd/mcp-authd/storage"

// KeyedColumns are what is read of a request with a key of its caller.
const KeyedColumns = "key_hash, caller_hash, digest, until, expires_at, sealed"

// KeyedRow reads KeyedColumns.
type KeyedRow struct {
	r              storage.KeyedRequest
	key, caller    []byte
	until, expires int64
}

// Dest is what to scan into.
func (r *KeyedRow) Dest() []any {
	return []any{&r.key, &r.caller, &r.r.Digest, &r.until, &r.expires, &r.r.Sealed}
}

// KeyedRequest is the record that was read.
func (r *KeyedRow) KeyedRequest() (out storage.KeyedRequest, err error) {
	out = r.r
	if out.Key, err = Hash(r.key); err != nil {
		return out, err
	}
	if out.Caller, err = Hash(r.caller); err != nil {
		return out, err
	}
	out.Until, out.ExpiresAt = Time(r.until), Time(r.expires)
	return out, nil
}

// KeyedValues are the values of KeyedColumns without the answer.
func KeyedValues(r storage.KeyedRequest) []any {
	return []any{r.Key[:], r.Caller[:], r.Digest, Millis(r.Until), Millis(r.ExpiresAt)}
}
