package session

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

// MaxHeld is how many people can be signed in in one browser at once.
const MaxHeld = 5

// BrowserSession is a session that a browser holds. The one of the session cookie is current: it is
// who the browser belongs to. The others wait in a cookie of their own, which versions before know
// nothing of.
type BrowserSession struct {
	Hash  storage.Hash
	value string
}

// Held returns the sessions that a browser holds, the current one first if there is one. When a server of the
// version before has set another session since, that one is current, and this server's is beside it, so that
// signing out ends both.
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

// InBrowser is a minted session as the browser will hold it.
func (s Minted) InBrowser() BrowserSession { return BrowserSession{s.Session.Hash, s.value} }

// SetCurrent makes a session, which has been stored, the current one of the browser, with others beside it.
func (m *Manager) SetCurrent(
	w http.ResponseWriter, r *http.Request, current BrowserSession, others ...BrowserSession,
) {
	m.share(w, r, m.session, current.value, m.ttl)
	m.set(w, m.session, current.value, m.ttl)
	m.wait(w, r, slices.DeleteFunc(slices.Clone(others), func(h BrowserSession) bool { return h == current }))
}

// DropCurrent leaves the browser without a current session, and holds others.
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

// SetSignedOut notes that a person has signed out in this browser, until it is closed or EndSignedOut.
func (m *Manager) SetSignedOut(w http.ResponseWriter) { m.set(w, m.signedOut, "1", 0) }

// SignedOut reports whether a person has signed out in this browser and nobody has left for a provider since:
// the provider may still hold their session, and would bring them back without a question.
func (m *Manager) SignedOut(r *http.Request) bool {
	_, ok := m.read(r, m.signedOut)
	return ok
}

// EndSignedOut forgets a sign-out.
func (m *Manager) EndSignedOut(w http.ResponseWriter, r *http.Request) {
	if m.SignedOut(r) {
		m.remove(w, r, m.signedOut)
	}
}
