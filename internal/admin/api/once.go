package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The limits for requests with an Idempotency-Key.
const (
	maxKey   = 255 // of a key, in bytes
	maxKeyed = 10_000
	maxKept  = 1 << 20 // of a stored response, in bytes
	keptFor  = 24 * time.Hour
	// runsFor is how long such a request may run, even if its caller is gone. After endedAfter it
	// has ended, even if its process was killed.
	runsFor    = time.Minute
	endedAfter = runsFor + 15*time.Second
)

// The purposes of keys derived from the master key.
const (
	purposeAnswer = "answer of the API"
	purposeInput  = "input of the API"
)

const replayedHeader = "Idempotency-Replayed"

// keyOf returns the caller's Idempotency-Key for a change, or "".
func keyOf(r *http.Request, s admin.Spec) (string, *problem) {
	given := r.Header.Values("Idempotency-Key")
	if !s.Changes() || len(given) == 0 {
		return "", nil
	}
	key := given[0]
	unusable := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(given) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, unusable) {
		return "", invalid("an Idempotency-Key has 1 to %d visible ASCII characters, without spaces", maxKey)
	}
	return key, nil
}

// serveOnce serves a change with an Idempotency-Key.
func (o operation) serveOnce(w http.ResponseWriter, r *http.Request, by caller, key string, in reflect.Value) {
	answer, replayed, refused := o.once(r.Context(), by, key, conditionsOf(r), in)
	if refused != nil {
		o.refuse(w, r, refused)
		return
	}
	if replayed {
		w.Header().Set(replayedHeader, "true")
	}
	answer.write(w)
}

// once runs the operation for the first request with a key, and returns the stored response for
// later ones.
func (o operation) once(
	ctx context.Context, by caller, key string, c conditions, in reflect.Value,
) (a answer, replayed bool, refused *problem) {
	// Only a caller who may still run the operation gets the stored response.
	if err := o.c.Service.Permits(by.actor, o.verb.Spec()); err != nil {
		return answer{}, false, o.explain(ctx, err)
	}
	r, digests, err := o.keyed(by.actor, key, c, in)
	if err != nil {
		return answer{}, false, o.explain(ctx, err)
	}
	now := o.c.Service.Now()
	r.Until, r.ExpiresAt = now.Add(endedAfter), now.Add(keptFor)
	stored, begun, err := o.c.Requests.BeginKeyed(ctx, r, maxKeyed, now)
	switch {
	case errors.Is(err, storage.ErrFull):
		return answer{}, false, &problem{
			kind: kindLimited, after: time.Hour, detail: "There are too many keys of yours. They are kept for 24 hours.",
		}
	case err != nil:
		return answer{}, false, o.explain(ctx, err)
	case !begun:
		a, refused := o.repeated(stored, digests, now)
		return a, true, refused
	}
	// The caller may be gone, and may ask for the result later.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runsFor)
	defer cancel()
	a, _, refused = o.call(ctx, by, c, in)
	return a, false, o.settle(ctx, r.Key, a, refused)
}

// keyed returns a request under its key, with the digests of its input. The first digest uses the
// current master key.
func (o operation) keyed(
	a admin.Actor, key string, c conditions, in reflect.Value,
) (r storage.KeyedRequest, digests [][]byte, err error) {
	caller, err := json.Marshal([]string{a.UserID, a.ClientID})
	if err != nil {
		return r, nil, err
	}
	// The input includes the path. It may contain a password: with a plain digest, anyone with the
	// database could try passwords.
	input, err := json.Marshal([]any{o.verb.Spec().Name, c.match, in.Interface()})
	if err != nil {
		return r, nil, err
	}
	for _, k := range o.c.Ring.Keys(purposeInput, sha256.Size) {
		mac := hmac.New(sha256.New, k)
		mac.Write(input)
		digests = append(digests, mac.Sum(nil))
	}
	return storage.KeyedRequest{
		Key: secrets.Hash(string(caller) + key), Caller: secrets.Hash(string(caller)), Digest: digests[0],
	}, digests, nil
}

// repeated returns the response for a key that was used before.
func (o operation) repeated(stored storage.KeyedRequest, digests [][]byte, now time.Time) (answer, *problem) {
	same := false
	for _, d := range digests {
		same = same || hmac.Equal(d, stored.Digest)
	}
	text, err := o.c.Ring.Open(purposeAnswer, stored.Sealed, stored.Key[:])
	switch {
	case !same && stored.Sealed != nil && err != nil: // the digest was also made under the old master key
		return answer{}, &problem{
			kind: kindUnreadable, detail: "The first request with this key was answered under a master key that this server " +
				"does not have any more. Look at what there is, and send a new request with another key.",
		}
	case !same:
		return answer{}, &problem{kind: kindReused, detail: "Choose another key for another request."}
	}
	if stored.Sealed == nil && now.Before(stored.Until) {
		return answer{}, &problem{
			kind: kindRunning, after: time.Second, detail: "The first request with this key has not ended yet.",
		}
	}
	var kept answer
	if err != nil || json.Unmarshal(text, &kept) != nil || kept.Status == 0 {
		return answer{}, &problem{
			kind: kindUnsure, detail: "The first request with this key has failed, or its answer was not kept. " +
				"Look at what there is, and send a new request with another key.",
		}
	}
	return kept, nil
}

// settle stores the result of a request. A request that was refused before anything was done can be
// repeated under the same key. An internal error is not stored, because it is unknown whether
// something was done.
func (o operation) settle(ctx context.Context, key storage.Hash, a answer, refused *problem) *problem {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endedAfter-runsFor)
	defer cancel()
	if refused != nil {
		a = refused.answer()
	}
	if refused != nil && refused.untouched() {
		o.note(ctx, o.c.Requests.ForgetKeyed(ctx, key))
		return refused
	}
	if a.Status >= 500 || len(a.Body) > maxKept {
		a = answer{}
	}
	text, err := json.Marshal(a)
	if err == nil {
		err = o.c.Requests.EndKeyed(ctx, key, o.c.Ring.Seal(purposeAnswer, text, key[:]))
	}
	o.note(ctx, err)
	return refused
}

// note logs a result that could not be stored. A repeated request is not run again.
func (o operation) note(ctx context.Context, err error) {
	if err != nil {
		o.c.Log.ErrorContext(ctx, "the answer to a request with a key was not kept", "error", err)
	}
}
