package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// heldList is a status list with what we know of its age. It never changes.
type heldList struct {
	*statusList
	etag  string
	asked time.Time // when the question was put whose answer this is
	due   time.Time // from when it is asked for again, while it serves on
	old   time.Time // from when requests wait for that
	until time.Time // from when it is no good, whatever the outage
}

// statusCacheAge lets a cache between answer for many resource servers, and bounds what it
// adds to the delay (RFC 9111 §5.2.1.1).
const statusCacheAge = "max-age=1"

// read puts the question.
func (p *statusPoller) read(ctx context.Context, old *heldList) (*heldList, error) {
	s, asked := p.lists, p.lists.now()
	h := http.Header{"Accept": {"application/" + statusListType}, "Cache-Control": {statusCacheAge}}
	if old.renewable(asked) {
		h.Set("If-None-Match", old.etag)
	}
	resp, body, err := fetch(ctx, s.client, p.uri, maxStatusToken, h)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotModified && h.Get("If-None-Match") != "":
		return s.hold(old.statusList, old.etag, asked), nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s", p.uri, resp.Status)
	}
	l, err := s.parse(ctx, p.uri, string(body))
	if err != nil {
		return nil, err
	}
	return s.hold(l, resp.Header.Get("ETag"), asked), nil
}

// renewable reports whether it is enough to hear that a list has not changed. In the
// second half of its life we want one that lasts longer.
func (l *heldList) renewable(now time.Time) bool {
	if l == nil || l.etag == "" {
		return false
	}
	return l.expires.IsZero() || l.expires.Sub(now) > now.Sub(l.issued)
}

// parse verifies a status list token and reads it (OAuth Token Status List §8.3).
func (s *statusLists) parse(ctx context.Context, uri, token string) (*statusList, error) {
	jws, err := jose.ParseSignedCompact(token, s.algorithms)
	if err != nil {
		return nil, errors.New("the status list is not a signed JWT of an accepted algorithm")
	}
	if !hasType(jws, statusListType) {
		return nil, errors.New("the status list is a token of another type")
	}
	payload, _, err := s.verify(ctx, jws)
	if err != nil {
		return nil, fmt.Errorf("status list: %v", err) // says nothing about the access token
	}
	return readStatusList(payload, s.issuer, uri, s.now(), s.skew)
}

// hold works out how long a list counts: never beyond its own end.
func (s *statusLists) hold(l *statusList, etag string, asked time.Time) *heldList {
	h := &heldList{statusList: l, etag: etag, asked: asked, old: asked.Add(l.ttl), until: asked.Add(l.ttl + s.stale)}
	h.due = h.old.Add(-min(statusLead, l.ttl/10))
	if l.expires.IsZero() {
		return h
	}
	for _, t := range []*time.Time{&h.due, &h.old, &h.until} {
		if l.expires.Before(*t) {
			*t = l.expires
		}
	}
	return h
}
