package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// KeyedColumns are the columns of a request with an idempotency key.
const KeyedColumns = "key_hash, caller_hash, digest, until, expires_at, sealed"

// KeyedRow reads KeyedColumns.
type KeyedRow struct {
	r              storage.KeyedRequest
	key, caller    []byte
	until, expires int64
}

func (r *KeyedRow) Dest() []any {
	return []any{&r.key, &r.caller, &r.r.Digest, &r.until, &r.expires, &r.r.Sealed}
}

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

// KeyedValues returns the values of KeyedColumns without the response.
func KeyedValues(r storage.KeyedRequest) []any {
	return []any{r.Key[:], r.Caller[:], r.Digest, Millis(r.Until), Millis(r.ExpiresAt)}
}
