package session

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// MaxHeld limits how many users can be signed in at once in one browser.
const MaxHeld = 5

// BrowserSession is a session that a browser holds. The session in the session cookie is current:
// it decides who the browser belongs to. The others are in a separate cookie, which earlier
// versions ignore.
type BrowserSession struct {
	Hash  storage.Hash
	value string
}

// Held returns the sessions that a browser holds, the current one first, and whether there is a
// current one. If a server of the previous version has since set another session, that session is
// current. This server's session follows it, so that signing out ends both.
func (m *Manager) Held(r *http.Request) (current bool, all []BrowserSession) {
	values := m.readAll(r, m.session)
	current = len(values) > 0
	waiting, _ := m.read(r, m.waiting)
	for _, value := range append(values, strings.Fields(waiting)...) {
		h := BrowserSession{secrets.Hash(value), value}
		if len(all) < MaxHeld && !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	return current, all
}

// InBrowser returns the session in the form that the browser will hold.
func (s Minted) InBrowser() BrowserSession { return BrowserSession{s.Session.Hash, s.value} }

// SetCurrent makes a stored session the current one of the browser, and keeps the others beside it.
func (m *Manager) SetCurrent(
	w http.ResponseWriter, r *http.Request, current BrowserSession, others ...BrowserSession,
) {
	m.share(w, r, m.session, current.value, m.ttl)
	m.set(w, m.session, current.value, m.ttl)
	m.wait(w, r, slices.DeleteFunc(slices.Clone(others), func(h BrowserSession) bool { return h == current }))
}

// DropCurrent leaves the browser without a current session, and keeps the others.
func (m *Manager) DropCurrent(w http.ResponseWriter, r *http.Request, others ...BrowserSession) {
	m.Clear(w, r)
	m.wait(w, r, others)
}

func (m *Manager) wait(w http.ResponseWriter, r *http.Request, held []BrowserSession) {
	var values []string
	for _, h := range held[:min(len(held), MaxHeld-1)] {
		values = append(values, h.value)
	}
	if len(values) == 0 {
		m.remove(w, r, m.waiting)
		return
	}
	m.retire(w, r, m.waiting)
	m.set(w, m.waiting, strings.Join(values, " "), m.ttl)
}

// SetSignedOut records that a user has signed out in this browser, until it is closed or
// EndSignedOut is called.
func (m *Manager) SetSignedOut(w http.ResponseWriter) { m.set(w, m.signedOut, "1", 0) }

// SignedOut reports whether a user has signed out in this browser and has not gone to a provider
// since. The provider may still have a session, and would sign the user in again without asking.
func (m *Manager) SignedOut(r *http.Request) bool {
	_, ok := m.read(r, m.signedOut)
	return ok
}

// EndSignedOut deletes the record of a sign-out.
func (m *Manager) EndSignedOut(w http.ResponseWriter, r *http.Request) {
	if m.SignedOut(r) {
		m.remove(w, r, m.signedOut)
	}
}
