package stdio

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/gateway/peers"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Server serves one program. It is an http.Handler and must be behind a Guard. Call Run while it is
// in use, and then Close.
type Server struct {
	c     Config
	gates *bounded.Map[string, gate] // of users whose program has failed
	life  context.Context            // ends at Close, and with it the gateway's own requests to programs
	end   context.CancelFunc
	site  *peers.Site // nil: requests are not forwarded between replicas

	mu       sync.Mutex // guards the fields below
	sessions map[string]*session
	hubs     map[string]*hub
	starting map[string]*sync.Mutex // allows one start per hub at a time
	running  map[string]int         // number of processes per user
	total    int
	legacy   time.Time // until then the program counts as one without the stateless revision
	fault    error     // why the program's last start failed
	closed   bool
	all      sync.WaitGroup // processes
}

// New returns a server, or an error that names the fault in c. It does not start a process.
func New(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := findProgram(c.Command[0]); err != nil {
		return nil, err
	}
	s := &Server{
		c: c, sessions: map[string]*session{}, hubs: map[string]*hub{}, starting: map[string]*sync.Mutex{},
		running: map[string]int{}, gates: bounded.New[string, gate](maxGates, c.Now),
	}
	s.life, s.end = context.WithCancel(context.Background())
	if c.Peers != nil {
		s.site = c.Peers.Site(c.Resource, int64(c.MaxBody), s)
	}
	return s, nil
}

func newID() string { return rand.Text() }

var (
	errFull   = errors.New("as many processes run as may")
	errClosed = errors.New("the gateway is stopping")
)

// gate delays the restart of a program that ends soon after its start.
type gate struct {
	failures int
	until    time.Time
}

const (
	quickEnd = 5 * time.Second // a program that ends sooner by itself has failed
	maxWait  = time.Minute
	maxGates = 10_000
)

// held is the error while a gate is closed.
type held struct{ wait time.Duration }

func (h held) Error() string {
	return "the program has failed, and is started again in " + h.wait.String()
}

// person returns the key that owns sessions and processes. It is the same user in every
// application, because applications can register themselves.
func person(p *mcpresource.Principal) string { return p.Person() }

// reserve counts a new process for the user key. If the limit is reached, it ends the process that
// has been idle longest. A program needs time to end, so up to twice the limit may run for a while,
// however fast callers arrive.
func (s *Server) reserve(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if err := s.heldBack(key); err != nil {
		return err
	}
	if s.total >= 2*s.c.MaxProcesses {
		return errFull
	}
	if key != "" && s.running[key] >= s.c.MaxPerCaller {
		if s.running[key] >= 2*s.c.MaxPerCaller || !s.makeRoom(key) {
			return errFull
		}
	} else if s.total >= s.c.MaxProcesses && !s.makeRoom("") {
		return errFull
	}
	s.running[key]++
	s.total++
	s.all.Add(1)
	return nil
}

// heldBack returns an error while the gate of a user is closed.
func (s *Server) heldBack(key string) error {
	g, ok := s.gates.Use(key, time.Time{}) // Use keeps the entry of a delayed user in the map
	if wait := g.until.Sub(s.c.Now()); ok && wait > 0 {
		return held{wait}
	}
	return nil
}

// makeRoom ends the session or hub that has been idle longest, of one user or, for "", of all
// users. The caller holds mu.
func (s *Server) makeRoom(key string) bool {
	now, longest := s.c.Now(), time.Duration(0)
	var oldest *session
	var idle *hub
	for _, x := range s.sessions {
		own := x.hub == nil && !x.isClosed() && (key == "" || person(x.person) == key)
		if d := x.idle.since(now); own && d > longest {
			longest, oldest = d, x
		}
	}
	for _, h := range s.hubs {
		if d := h.idle.since(now); (key == "" || h.person == key) && !h.busy() && d > longest {
			longest, idle = d, h
		}
	}
	switch {
	case idle != nil:
		delete(s.hubs, idle.key)
		idle.link.close()
	case oldest != nil:
		delete(s.sessions, oldest.id)
		go oldest.close()
	default:
		return false
	}
	return true
}

// release uncounts a process that has ended, and records whether it has failed.
func (s *Server) release(key string, well bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Done()
	s.total--
	if s.running[key]--; s.running[key] <= 0 {
		delete(s.running, key)
	}
	if well {
		s.gates.Drop(key)
		return
	}
	g, _ := s.gates.Get(key)
	g.failures++
	g.until = s.c.Now().Add(min(time.Second<<min(g.failures-1, 10), maxWait))
	s.gates.Put(key, g, time.Time{})
}

// connect starts a process for p, or for all callers if p is nil. The process counts until it ends.
func (s *Server) connect(p *mcpresource.Principal, l *link, to peer) error {
	key := person(p)
	if err := s.reserve(key); err != nil {
		return err
	}
	l.onWord = func() { s.blame(nil) }
	l.onEnd = func() {
		well := l.proc.wanted || l.probe.Load()
		if !well && !l.spoke.Load() {
			s.blame(fmt.Errorf("the program ends before it says anything%s", l.proc.lastWords()))
		}
		if !well {
			l.proc.logEnd(&s.c)
		}
		s.release(key, well || s.c.Now().Sub(l.proc.begun) > quickEnd)
	}
	if err := l.start(s.c.env(p), to); err != nil {
		s.release(key, false)
		return err
	}
	return nil
}

func (s *Server) begin(p *mcpresource.Principal) (*session, error) {
	id := newID()
	if s.site != nil {
		id = s.site.Session(id)
	}
	x := newSession(s, id, p)
	if s.c.Shared {
		h, err := s.hub(nil)
		if err != nil {
			return nil, err
		}
		if x.hub, x.link = h, h.link; !h.join(x) {
			return nil, errEnded
		}
	} else {
		x.link = newLink(&s.c, false)
		if err := s.connect(p, x.link, x); err != nil {
			return nil, err
		}
	}
	return x, s.keep(x)
}

// legacyFor is how long the server remembers that the program does not support the stateless
// revision. Asking again costs a process.
const legacyFor = 10 * time.Minute

// modernHub returns the process for the sessionless requests of p, or errLegacy. An older program
// depends on the client capabilities, which only initialize contains. So sessionless requests to it
// are refused, and clients begin with initialize, as with such a server over HTTP.
func (s *Server) modernHub(p *mcpresource.Principal) (*hub, error) {
	s.mu.Lock()
	known := s.isLegacy()
	s.mu.Unlock()
	if known {
		return nil, errLegacy
	}
	return s.hub(p)
}

// isLegacy reports whether the program is known not to support the stateless revision. The caller
// holds mu.
func (s *Server) isLegacy() bool { return s.c.Shared || s.c.Now().Before(s.legacy) }

// hub returns the process for the sessionless requests of p, or, if p is nil, for the sessions of
// all callers.
func (s *Server) hub(p *mcpresource.Principal) (*hub, error) {
	key := p.Key()
	s.mu.Lock()
	if h := s.hubs[key]; h != nil {
		s.mu.Unlock()
		return h, nil
	}
	first := s.starting[key]
	if first == nil {
		first = &sync.Mutex{}
		s.starting[key] = first
	}
	s.mu.Unlock()
	first.Lock()
	defer first.Unlock()
	s.mu.Lock()
	h, older := s.hubs[key], p != nil && s.isLegacy()
	s.mu.Unlock()
	switch {
	case h != nil:
		return h, nil
	case older: // another request has found this out meanwhile
		return nil, errLegacy
	}
	return s.newHub(p)
}

func (s *Server) newHub(p *mcpresource.Principal) (*hub, error) {
	h := &hub{
		server: s, key: p.Key(), person: person(p), link: newLink(&s.c, true), sessions: map[*session]bool{},
		idle: usage{now: s.c.Now, last: s.c.Now()},
	}
	h.link.probe.Store(!s.c.Shared)
	err := s.connect(p, h.link, h)
	if err == nil {
		// This uses the server's context, since the first caller may leave while others wait for
		// the process.
		if err = h.greet(s.life); err != nil {
			h.link.close()
		}
	}
	h.link.probe.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.starting, h.key)
	if errors.Is(err, errLegacy) {
		s.legacy = s.c.Now().Add(legacyFor)
	}
	switch other := s.hubs[h.key]; {
	case err != nil:
		return nil, err
	case s.closed:
		h.link.close()
		return nil, errClosed
	case other != nil:
		h.link.close()
		return other, nil
	}
	s.hubs[h.key] = h
	return h, nil
}

func (s *Server) forget(x *session) {
	s.mu.Lock()
	delete(s.sessions, x.id)
	s.mu.Unlock()
	x.close()
}

func (s *Server) drop(h *hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hubs[h.key] == h {
		delete(s.hubs, h.key)
	}
}

// Run ends unused sessions and processes until ctx ends.
func (s *Server) Run(ctx context.Context) {
	every := time.NewTicker(min(s.c.Idle/4+time.Millisecond, 10*time.Second))
	defer every.Stop()
	again := time.NewTicker(retrying)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			s.retry(ctx)
		case <-every.C:
			s.sweep(s.c.Now())
		}
	}
}

func (s *Server) sweep(now time.Time) {
	s.mu.Lock()
	var sessions []*session
	for _, x := range s.sessions {
		if x.idle.since(now) > s.c.Idle {
			sessions = append(sessions, x)
		}
		x.mu.Lock()
		x.trim(now)
		x.mu.Unlock()
	}
	var hubs []*hub
	for key, h := range s.hubs {
		if h.idle.since(now) > s.c.Idle && !h.busy() {
			hubs = append(hubs, h)
			delete(s.hubs, key)
		}
	}
	s.mu.Unlock()
	for _, x := range sessions {
		x.close()
	}
	for _, h := range hubs {
		h.link.close()
	}
}

// Close ends every session and every process, and waits for their end.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.end()
	sessions, hubs := s.sessions, s.hubs
	s.sessions, s.hubs = map[string]*session{}, map[string]*hub{}
	s.mu.Unlock()
	for _, x := range sessions {
		x.close()
	}
	for _, h := range hubs {
		h.link.close()
	}
	s.all.Wait()
	return nil
}
