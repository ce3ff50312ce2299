package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// pushed stores an authorization request of a client.
func (e *env) pushed(t testing.TB) storage.PushedRequest {
	t.Helper()
	r := storage.PushedRequest{
		Reference: randomHash(), ClientID: "app", Sealed: []byte{0, 1, 254, 255}, ExpiresAt: e.now.Add(time.Minute),
	}
	check(t, e.s.PutPushedRequest(e.ctx, r))
	return r
}

func (e *env) open(r storage.PushedRequest, browser storage.Hash, at time.Time) ([]byte, error) {
	return e.s.OpenPushedRequest(e.ctx, storage.OpenPushed{
		Reference: r.Reference, ClientID: r.ClientID, Browser: browser, Now: at,
	})
}

func pushedRequests(t *testing.T, e *env) {
	t.Run("AS-242 a browser opens a request again until it expires, and no other browser does", func(t *testing.T) {
		r, browser := e.pushed(t), randomHash()
		for _, at := range []time.Time{e.now, r.ExpiresAt.Add(-time.Millisecond)} {
			got, err := e.open(r, browser, at)
			check(t, err)
			same(t, got, r.Sealed)
			_, err = e.open(r, randomHash(), at)
			wantErr(t, err, storage.ErrSpent)
		}
		_, err := e.open(r, browser, r.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.open(r, randomHash(), r.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("AS-242 another client does not open a request, and leaves it as it is", func(t *testing.T) {
		r := e.pushed(t)
		other := r
		other.ClientID = "other"
		_, err := e.open(other, randomHash(), e.now)
		wantErr(t, err, storage.ErrMismatch)
		_, err = e.open(r, randomHash(), e.now)
		check(t, err)
	})
	t.Run("a reference that is taken, and one that is not known", func(t *testing.T) {
		r := e.pushed(t)
		wantErr(t, e.s.PutPushedRequest(e.ctx, r), storage.ErrExists)
		r.Reference = randomHash()
		_, err := e.open(r, randomHash(), e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a request is swept when it has expired", func(t *testing.T) {
		r := e.pushed(t)
		for _, at := range []time.Time{r.ExpiresAt.Add(-time.Millisecond), r.ExpiresAt} {
			_, err := e.s.Sweep(e.ctx, storage.Retention{Now: at}, 100)
			check(t, err)
			if _, err = e.open(r, storage.Hash{1}, e.now); at.Before(r.ExpiresAt) {
				check(t, err)
			} else {
				wantErr(t, err, storage.ErrNotFound)
			}
		}
	})
}

// raceOpenPushed opens one request from 32 browsers at the same time: one gets it.
func raceOpenPushed(t *testing.T, e *env) {
	r := e.pushed(t)
	var c tally
	compete(func(int) {
		_, err := e.open(r, randomHash(), e.now)
		c.add(err, storage.ErrSpent)
	})
	c.want(t, 1)
}
