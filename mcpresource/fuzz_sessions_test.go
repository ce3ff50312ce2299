package mcpresource

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// sessionModel is an MCP server that issues few ids, repeatedly, and records who got responses in
// which session. A request may arrive while another is running.
type sessionModel struct {
	steps
	t        *testing.T
	h        http.Handler
	sessions SessionBinder
	depth    int // running requests
	known    map[string]bool
	owner    map[string]string // by id; without sessions never used with a token
	log      []string
}

func (m *sessionModel) id() string { return fmt.Sprint("s-", m.next(4)) }

// ServeHTTP implements http.Handler.
func (m *sessionModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	m.depth++
	for m.depth < 8 && m.next(3) == 1 {
		m.request()
	}
	m.depth--
	switch {
	case id == "":
		id = m.id()
		m.known[id] = true
		w.Header().Set("Mcp-Session-Id", id)
	case !m.known[id]:
		w.WriteHeader([]int{400, 404, 200, 500, 202}[m.next(5)])
	case r.Method == http.MethodDelete:
		if m.next(4) == 0 {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		delete(m.known, id)
		w.WriteHeader(http.StatusNoContent)
	}
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

func (m *sessionModel) request() {
	token := fuzzTokens[m.next(len(fuzzTokens))]
	who, _, _ := strings.Cut(token, "@")
	method, body, id := http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, ""
	switch m.next(4) {
	case 0:
		body = initialize
	case 1:
		method, body, id = http.MethodDelete, "", m.id()
	default:
		id = m.id()
	}
	req := httptest.NewRequest(method, resource, strings.NewReader(body))
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if id != "" {
		req.Header.Set("Mcp-Session-Id", id)
	}
	before := m.owner[id]
	m.log = append(m.log, fmt.Sprintf("> %s %s %.60s in %q", token, method, body, id))
	w := httptest.NewRecorder()
	m.h.ServeHTTP(w, req)
	m.log = append(m.log, fmt.Sprintf("%s %s %.60s in %q: %d", token, method, body, id, w.Code))
	m.answered(who, method, id, before, w)
}

// answered checks a response: no caller gets one in a session that belonged to another user all
// along.
func (m *sessionModel) answered(who, method, id, before string, w *httptest.ResponseRecorder) {
	good := w.Code >= 200 && w.Code < 300
	opened := w.Header().Get("Mcp-Session-Id")
	switch now := m.owner[id]; {
	case !good:
	case id == "" && who == "":
		delete(m.owner, opened)
	case id == "":
		m.owner[opened] = who
	case now != "" && now != who && before != who:
		m.t.Fatalf("SP-14 RS-112 %s was answered in %s, which is %s's:\n%s", who, id, now, strings.Join(m.log, "\n"))
	case now == "" && before == "" && who != "":
		m.owner[id] = who
	}
	if method == http.MethodDelete && m.owner[id] == who && (good || w.Code == http.StatusNotFound) {
		if b, known, _ := m.sessions.Owner(m.t.Context(), id); !known || b.Pending {
			delete(m.owner, id)
		}
	}
}

// FuzzSessions: security M5. Whatever is opened, claimed and deleted in any order, no two users
// share a session, even with running requests.
func FuzzSessions(f *testing.F) {
	f.Add([]byte{2, 2, 1, 0, 0, 0, 0, 1, 0, 0, 1, 2, 2, 1})
	f.Add([]byte("bob claims s-1, then alice opens it, then bob comes back to it"))
	f.Add([]byte{4, 0, 0, 1, 0, 2, 1, 0, 2, 3, 1, 0, 0, 1, 1, 0, 1, 2, 2, 1, 0, 0})
	f.Add([]byte("91119111010100010001")) // uses a pending claim
	f.Add([]byte("91119001000210"))       // a refused claim of a session that is opened meanwhile
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newRig(t, func(c *Config) {
			publicly(c)
			through(c)
			c.Limits, c.MaxSessions, c.MaxAnonymousSessions = Limits{Calls: Rate{PerSecond: -1}, Concurrent: -1}, -1, -1
		})
		m := &sessionModel{
			steps: steps{b}, t: t, sessions: r.c.Sessions, known: map[string]bool{}, owner: map[string]string{},
		}
		m.h = r.Protect(m)
		for len(m.left) > 0 {
			m.request()
		}
		if r.sessions.opening.Len() != 0 || r.load.underway.Len() != 0 {
			t.Errorf("still counted: %v %v", r.sessions.opening.Len(), r.load.underway.Len())
		}
	})
}
