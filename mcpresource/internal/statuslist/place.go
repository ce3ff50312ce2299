// Package statuslist looks at the place of a token in a status list of its issuer (OAuth Token
// Status List, draft-ietf-oauth-status-list).
//
// A list is fetched when first needed, and again, in the background, just before its ttl has
// passed; a request waits only for the first one, or when the one at hand is older than ttl, as
// after a time without requests. While a request is watched its list is polled without others.
//
// A revocation is seen after the ttl of the list plus one second at most: mcp-authd serves a list
// that is up to a second old, and this package uses it for no longer than ttl. The ttl is the
// issuer's choice, within one second and one hour here, and 7 seconds when it makes none. A cache
// between the two may answer for a second (the request says "Cache-Control: max-age=1"); one that
// does not heed that adds what it keeps.
//
// When the list cannot be read again, or the answer is not signed by the issuer or has expired,
// the one at hand counts for Config.Stale longer, and never beyond its own exp; a revocation in an
// outage is seen so much later at most. Then, and when there is none yet, the status is unknown. A
// list must be at the origin of the issuer.
package statuslist

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

var (
	// ErrRevoked means that the issuer has revoked the token. Every other error of Check and
	// Watch means that its status is out of reach.
	ErrRevoked = errors.New("revoked by its issuer")

	errMalformed = errors.New("the status claim cannot be read")
	errElsewhere = errors.New("its status list is not at its issuer")
	errUnknown   = errors.New("its status list is out of reach")
)

// Place is the place of a token in a status list (OAuth Token Status List §6.2).
type Place struct {
	lists  *Lists
	uri    string
	index  uint64
	issued time.Time // the token, zero when it does not say
	poller atomic.Pointer[poller]
}

// Place reads a status claim. A claim of that name that is no object, or names other
// mechanisms alone, counts as none, which is nil; a place in a list that cannot be read is an
// error. issued is zero when the token does not say.
func (s *Lists) Place(claim json.RawMessage, issued time.Time) (*Place, error) {
	var status struct {
		List json.RawMessage `json:"status_list"`
	}
	if claim == nil || json.Unmarshal(claim, &status) != nil || status.List == nil {
		return nil, nil
	}
	var place struct {
		Index *uint64 `json:"idx"` // REQUIRED
		URI   string  `json:"uri"` // REQUIRED
	}
	if err := json.Unmarshal(status.List, &place); err != nil || place.Index == nil {
		return nil, errMalformed
	}
	if !s.within(place.URI) {
		return nil, errElsewhere
	}
	return &Place{lists: s, uri: place.URI, index: *place.Index, issued: issued}, nil
}

// within reports whether a list is at its issuer, so that no token sends us elsewhere or
// into our own network.
func (s *Lists) within(uri string) bool {
	rest, ok := strings.CutPrefix(uri, oauth.ResourceOrigin(s.c.Issuer))
	return ok && strings.HasPrefix(rest, "/") && !strings.Contains(rest, "#")
}

// Check returns nil for a token that is valid now. While the list is fresh this is a
// look at a bit, without a lock.
func (r *Place) Check(ctx context.Context) error {
	now := r.lists.c.Now()
	if p := r.poller.Load(); p != nil {
		if l := p.fresh(now); l != nil && r.index < l.count {
			return l.status(r.index)
		}
	}
	return r.inquire(ctx, now)
}

// inquire is Check when the list has to be asked for, soon or now.
func (r *Place) inquire(ctx context.Context, now time.Time) error {
	p := r.lists.poller(r.uri, now)
	r.poller.Store(p)
	l, err := p.current(ctx, now)
	if err != nil {
		return err
	}
	// A list may have grown since it was read, but not to a place before that.
	if r.index >= l.count && !l.asked.After(r.issued.Add(r.lists.c.Skew)) {
		if l, err = p.since(ctx, now); err != nil {
			return err
		}
	}
	return l.status(r.index)
}

// status is nil when the token at index is valid. An index beyond the list is not
// (§8.3).
func (b bitmap) status(index uint64) error {
	if index >= b.count || !b.valid(index) {
		return ErrRevoked
	}
	return nil
}
