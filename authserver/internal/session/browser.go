package session

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// maxBrowserIDs limits the IDs of a browser. A browser gets several if it opens several pages
// before it has one.
const maxBrowserIDs = 16

// Browser returns the ID of the browser, and assigns one if the request has no valid one. It can be
// called repeatedly for one request.
//
// Each ID has a separate cookie, so that tabs that a new browser opens together do not overwrite
// each other's ID. As accepts the form of any of them.
func (m *Manager) Browser(w http.ResponseWriter, r *http.Request) string {
	m.limitBrowserIDs(w, r)
	if ids := m.browserIDs(r); len(ids) > 0 {
		return ids[0]
	}
	id, ok := m.readNamed(r, m.before[m.browser])
	if !ok {
		id = secrets.Token("")
	}
	http.SetCookie(w, m.cookie(m.browserName(id), m.encode(m.browserName(id), id), 0)) // until the browser is closed
	m.prefer(r, id)
	return id
}

// As calls try with each ID of the browser until it succeeds. Browser then returns that ID for the
// rest of the request. As returns the last error if no ID succeeds. Data bound to one browser still
// opens in no other: an ID is as hard to guess as a session, and other sites cannot set its cookie.
func (m *Manager) As(w http.ResponseWriter, r *http.Request, try func(browser string) error) error {
	first := m.Browser(w, r)
	ids := m.browserIDs(r)
	if before, ok := m.readNamed(r, m.before[m.browser]); ok && !slices.Contains(ids, before) {
		ids = append(ids, before)
	}
	var err error
	for _, id := range ids {
		if err = try(id); err == nil {
			if id != first {
				m.prefer(r, id)
			}
			break
		}
	}
	return err
}

// browserIDs returns the IDs in the cookies of a request.
func (m *Manager) browserIDs(r *http.Request) (ids []string) {
	for _, c := range r.Cookies() {
		if !strings.HasPrefix(c.Name, m.browser+"-") {
			continue
		}
		if id, ok := m.decode(c); ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// limitBrowserIDs removes cookies beyond maxBrowserIDs, so that the header stays within the limits
// of servers. Unreadable cookies, from another master key, are removed first.
func (m *Manager) limitBrowserIDs(w http.ResponseWriter, r *http.Request) {
	var good, bad []string
	for _, c := range r.Cookies() {
		if !strings.HasPrefix(c.Name, m.browser+"-") {
			continue
		}
		if _, ok := m.decode(c); ok {
			good = append(good, c.Name)
		} else {
			bad = append(bad, c.Name)
		}
	}
	all := append(good, bad...)
	if len(all) <= maxBrowserIDs {
		return
	}
	cookies := r.Cookies()
	r.Header.Del("Cookie")
	for _, c := range cookies {
		if !slices.Contains(all[maxBrowserIDs:], c.Name) {
			r.AddCookie(c)
			continue
		}
		http.SetCookie(w, m.cookie(c.Name, "", -time.Second))
	}
}

// prefer moves an ID to the front of a request's IDs.
func (m *Manager) prefer(r *http.Request, id string) {
	name := m.browserName(id)
	lines := append([]string{name + "=" + m.encode(name, id)}, r.Header["Cookie"]...)
	r.Header.Set("Cookie", strings.Join(lines, "; "))
}

// browserName returns the cookie name for an ID. It reveals nothing about the ID.
func (m *Manager) browserName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return m.browser + "-" + base64.RawURLEncoding.EncodeToString(sum[:6])
}
