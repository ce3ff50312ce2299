// Package statuslist checks the entry of a token in a status list of its issuer (OAuth Token Status
// List, draft-ietf-oauth-status-list).
//
// A list is fetched when first needed, and again in the background just before its ttl ends. A
// request only waits for the first fetch, or if the list is older than its ttl, for example after a
// time without requests. While a request is watched, its list is also polled without other
// requests.
//
// A revocation takes effect at most one second after the ttl of the list. mcp-authd serves a list
// that is up to a second old, and this package uses it no longer than ttl. The issuer chooses the
// ttl; here it is limited to between one second and one hour, and the default is 7 seconds. A cache
// in between may answer for one second (the request has "Cache-Control: max-age=1"). A cache that
// ignores this adds its own delay.
//
// The list may become unavailable, or a response may have expired or lack the issuer's signature.
// Then the previous list counts for Config.Stale longer, but never beyond its exp. During an
// outage, a revocation may be delayed by that time. After it, and without any list, the status is
// unknown. A list must be at the origin of the issuer.
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
	// ErrRevoked means that the issuer has revoked the token. Any other error of Check and Watch
	// means that its status is unavailable.
	ErrRevoked = errors.New("revoked by its issuer")

	errMalformed = errors.New("the status claim cannot be read")
	errElsewhere = errors.New("its status list is not at its issuer")
	errUnknown   = errors.New("its status list is out of reach")
)

// Place is the entry of a token in a status list (OAuth Token Status List §6.2).
type Place struct {
	lists  *Lists
	uri    string
	index  uint64
	issued time.Time // of the token, zero if unknown
	poller atomic.Pointer[poller]
}

// Place reads a status claim. It returns nil for a claim that is not an object or only names other
// mechanisms. It returns an error for an entry that cannot be read. issued is zero if unknown.
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

// within reports whether a list is at the origin of its issuer. Otherwise a token could make this
// server send requests elsewhere, or into its own network.
func (s *Lists) within(uri string) bool {
	rest, ok := strings.CutPrefix(uri, oauth.ResourceOrigin(s.c.Issuer))
	return ok && strings.HasPrefix(rest, "/") && !strings.Contains(rest, "#")
}

// Check returns nil for a token that is valid now. While the list is fresh, it only reads a bit,
// without a lock.
func (r *Place) Check(ctx context.Context) error {
	now := r.lists.c.Now()
	if p := r.poller.Load(); p != nil {
		if l := p.fresh(now); l != nil && r.index < l.count {
			return l.status(r.index)
		}
	}
	return r.inquire(ctx, now)
}

// inquire is Check when the list must be fetched, soon or now.
func (r *Place) inquire(ctx context.Context, now time.Time) error {
	p := r.lists.poller(r.uri, now)
	r.poller.Store(p)
	l, err := p.current(ctx, now)
	if err != nil {
		return err
	}
	// A list may have grown since it was fetched, unless it is newer than the token.
	if r.index >= l.count && !l.asked.After(r.issued.Add(r.lists.c.Skew)) {
		if l, err = p.since(ctx, now); err != nil {
			return err
		}
	}
	return l.status(r.index)
}

// status returns nil if the token at index is valid. An index beyond the list is not valid (§8.3).
func (b bitmap) status(index uint64) error {
	if index >= b.count || !b.valid(index) {
		return ErrRevoked
	}
	return nil
}
