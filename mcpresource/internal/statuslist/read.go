package statuslist

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
)

// held is a status list with its times. It is immutable.
type held struct {
	*list
	etag  string
	asked time.Time // when it was requested
	due   time.Time // when to fetch it again, while it is still used
	old   time.Time // when requests wait for that
	until time.Time // when it becomes unusable, even during an outage
}

// cacheAge lets a cache answer for many resource servers, and limits the delay that it adds (RFC
// 9111 §5.2.1.1).
const cacheAge = "max-age=1"

func (p *poller) read(ctx context.Context, old *held) (*held, error) {
	s, asked := p.lists, p.lists.c.Now()
	h := http.Header{"Accept": {"application/" + mediaType}, "Cache-Control": {cacheAge}}
	if old.renewable(asked) {
		h.Set("If-None-Match", old.etag)
	}
	resp, body, err := issuer.Fetch(ctx, s.c.Client, p.uri, maxToken, h)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotModified && h.Get("If-None-Match") != "":
		return s.hold(old.list, old.etag, asked), nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s", p.uri, resp.Status)
	}
	l, err := s.parse(ctx, p.uri, string(body))
	if err != nil {
		return nil, err
	}
	return s.hold(l, resp.Header.Get("ETag"), asked), nil
}

// renewable reports whether a 304 response is sufficient. In the second half of its lifetime, a
// list with a later expiry is needed.
func (l *held) renewable(now time.Time) bool {
	if l == nil || l.etag == "" {
		return false
	}
	return l.expires.IsZero() || l.expires.Sub(now) > now.Sub(l.issued)
}

// parse verifies a status list token and reads it (OAuth Token Status List §8.3).
func (s *Lists) parse(ctx context.Context, uri, token string) (*list, error) {
	payload, err := s.c.Verify(ctx, token, mediaType)
	if err != nil {
		return nil, fmt.Errorf("status list: %v", err) // %v: it says nothing about the access token
	}
	return readClaims(payload, s.c.Issuer, uri, s.c.Now(), s.c.Skew)
}

// hold sets how long a list counts: never beyond its own expiry.
func (s *Lists) hold(l *list, etag string, asked time.Time) *held {
	h := &held{list: l, etag: etag, asked: asked, old: asked.Add(l.ttl), until: asked.Add(l.ttl + s.c.Stale)}
	h.due = h.old.Add(-min(lead, l.ttl/10))
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
