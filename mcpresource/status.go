package mcpresource

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
	errRevoked  = invalid("revoked by its issuer")
	errNoStatus = invalid("it has no place in a status list")
)

// statusRef is the place of a token in a status list (OAuth Token Status List §6.2).
type statusRef struct {
	lists  *statusLists
	uri    string
	index  uint64
	issued time.Time                   // the token, zero when it does not say
	signed func(context.Context) error // nil while the key of the token is good
	poller atomic.Pointer[statusPoller]
}

// statusRef reads a status claim. A claim of that name that is no object, or names other
// mechanisms alone, counts as none; a place in a list that cannot be read does not.
func (v *jwtValidator) statusRef(claim json.RawMessage, issued time.Time) (*statusRef, error) {
	if v.c.InsecureIgnoreStatus {
		return nil, nil
	}
	var status struct {
		List json.RawMessage `json:"status_list"`
	}
	if claim == nil || json.Unmarshal(claim, &status) != nil || status.List == nil {
		if v.c.RequireStatus {
			return nil, errNoStatus
		}
		return nil, nil
	}
	var place struct {
		Index *uint64 `json:"idx"` // REQUIRED
		URI   string  `json:"uri"` // REQUIRED
	}
	if err := json.Unmarshal(status.List, &place); err != nil || place.Index == nil {
		return nil, invalid("the status claim cannot be read")
	}
	if !v.status.within(place.URI) {
		return nil, invalid("its status list is not at its issuer")
	}
	return &statusRef{lists: v.status, uri: place.URI, index: *place.Index, issued: issued}, nil
}

// within reports whether a list is at its issuer, so that no token sends us elsewhere or
// into our own network.
func (s *statusLists) within(uri string) bool {
	rest, ok := strings.CutPrefix(uri, oauth.ResourceOrigin(s.issuer))
	return ok && strings.HasPrefix(rest, "/") && !strings.Contains(rest, "#")
}

// check returns nil for a token that is valid now. While the list is fresh this is a
// look at a bit, without a lock.
func (r *statusRef) check(ctx context.Context) error {
	now := r.lists.now()
	if p := r.poller.Load(); p != nil {
		if l := p.fresh(now); l != nil && r.index < l.count {
			return l.status(r.index)
		}
	}
	return r.inquire(ctx, now)
}

// inquire is check when the list has to be asked for, soon or now.
func (r *statusRef) inquire(ctx context.Context, now time.Time) error {
	p := r.lists.poller(r.uri, now)
	r.poller.Store(p)
	l, err := p.current(ctx, now)
	if err != nil {
		return errors.Join(ErrUnavailable, err)
	}
	// A list may have grown since it was read, but not to a place before that.
	if r.index >= l.count && !l.asked.After(r.issued.Add(r.lists.skew)) {
		if l, err = p.since(ctx, now); err != nil {
			return errors.Join(ErrUnavailable, err)
		}
	}
	return l.status(r.index)
}

// status is nil when the token at index is valid. An index beyond the list is not
// (§8.3).
func (b bitmap) status(index uint64) error {
	if index >= b.count || !b.valid(index) {
		return errRevoked
	}
	return nil
}
