package stdio

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	keepFinished = time.Minute // finished streams are kept for clients that missed the end
	maxFinished  = 16          // number of finished streams
	keptFinished = 4 << 20     // total bytes of finished streams
)

// session is a session that a client has opened with initialize (MCP up to 2025-11-25).
type session struct {
	id     string
	owner  string // see person
	person *mcpresource.Principal
	server *Server
	hub    *hub // the hub of a shared process; nil: the session has its own process
	link   *link
	own    *stream // messages that belong to no request

	mu         sync.Mutex // guards the fields below
	version    string     // negotiated; "" until then
	streams    map[string]*stream
	asked      []json.RawMessage // ids of the program's requests to the client
	subscribed map[string]bool   // resource URIs, for a shared process
	closed     bool
	done       chan struct{}
	idle       usage
}

// usage records whether something is in use, and the time of its last use.
type usage struct {
	now func() time.Time

	mu     sync.Mutex // guards the fields below
	active int
	last   time.Time
}

func (u *usage) enter() { u.change(1) }
func (u *usage) leave() { u.change(-1) }

func (u *usage) change(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active += n
	u.last = u.now()
}

// since returns the time since the last use, or 0 during use.
func (u *usage) since(now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.active > 0 {
		return 0
	}
	return now.Sub(u.last)
}

func newSession(s *Server, id string, p *mcpresource.Principal) *session {
	x := &session{
		id: id, owner: person(p), person: p, server: s, own: newStream("own", 0, &s.c),
		streams: map[string]*stream{}, subscribed: map[string]bool{},
		done: make(chan struct{}), idle: usage{now: s.c.Now, last: s.c.Now()},
	}
	x.streams[x.own.id] = x.own
	return x
}

// keep registers a session unless its program has already ended. Otherwise the session would never
// be removed.
func (s *Server) keep(x *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		go x.close()
		return errClosed
	case x.isClosed():
		return errEnded
	}
	s.sessions[x.id] = x
	return nil
}

func (s *Server) find(id string, p *mcpresource.Principal) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[id]
	if x == nil || x.owner != person(p) || s.c.PerClient && x.person.Key() != p.Key() {
		return nil
	}
	return x
}

// open registers a stream for the answers to calls.
func (x *session) open(calls int) *stream {
	s := newStream(newID(), calls, &x.server.c)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.trim(x.server.c.Now())
	if x.version >= mcp.Rev20251125 {
		s.prime()
	}
	x.streams[s.id] = s
	return s
}

// trim removes finished streams, oldest first.
func (x *session) trim(now time.Time) {
	n, size := 0, 0
	for {
		n, size = 0, 0
		oldest, at := "", time.Time{}
		for id, s := range x.streams {
			ended, bytes, over := s.over()
			if !over {
				continue
			}
			n, size = n+1, size+bytes
			if oldest == "" || ended.Before(at) {
				oldest, at = id, ended
			}
		}
		if n <= maxFinished && size <= keptFinished && (n == 0 || now.Sub(at) < keepFinished) {
			return
		}
		delete(x.streams, oldest)
	}
}

func (x *session) stream(id string) *stream {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.streams[id]
}

func (x *session) negotiated() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.version
}

// ask implements peer.
func (x *session) ask(f frame) {
	x.mu.Lock()
	if len(x.asked) < x.server.c.MaxPending {
		x.asked = append(x.asked, f.ID)
	}
	x.mu.Unlock()
	x.related(f)
}

// related sends a message to the stream of the newest call only (RS-106): most programs ask and log
// because of a call.
func (x *session) related(f frame) {
	if c := x.link.youngest(func(c *call) bool { return c.scope == x }); c != nil {
		c.out.deliver(&f, false)
		return
	}
	x.own.deliver(&f, false)
}

// note implements peer.
func (x *session) note(f frame) {
	switch f.Method {
	case "notifications/message", "notifications/cancelled":
		x.related(f)
	default:
		x.own.deliver(&f, false)
	}
}

// answered implements peer.
func (x *session) answered(method string, f frame) {
	if method != "initialize" || f.Error != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.version = text(at(f.Result, "protocolVersion"))
}

// lost implements peer. The program has ended, and the session ends with it.
func (x *session) lost() { x.server.forget(x) }

// reply sends the client's answer to a request of the program. An answer without a request is
// dropped.
func (x *session) reply(f frame) error {
	x.mu.Lock()
	asked := false
	for i, id := range x.asked {
		if same(id, f.ID) {
			f.ID, asked = id, true
			x.asked = append(x.asked[:i], x.asked[i+1:]...)
			break
		}
	}
	x.mu.Unlock()
	if !asked {
		return nil
	}
	return x.link.send(f)
}

func (x *session) isClosed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.closed
}

// close ends the session, and its process unless it is shared.
func (x *session) close() {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return
	}
	x.closed = true
	close(x.done)
	streams := make([]*stream, 0, len(x.streams))
	for _, s := range x.streams {
		streams = append(streams, s)
	}
	x.mu.Unlock()
	if x.hub != nil {
		x.hub.leave(x)
	} else if x.link != nil {
		x.link.close()
	}
	for _, s := range streams {
		s.close()
	}
	x.server.forget(x)
}
