package mcpresource

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Binding is whom a session of the protocol belongs to.
type Binding struct {
	Person string // see Principal.Person
	Client string // the application that opened it, or was the first to use it
	// Pending marks a claim that the server has not accepted yet. Binders store it.
	Pending bool
}

// SessionBinder remembers whom sessions belong to. A server with several replicas and
// sticky sessions needs no other than the one in memory.
type SessionBinder interface {
	// Open records whom the server has opened a session for, in place of any other.
	Open(ctx context.Context, sessionID string, b Binding) error
	// Claim records b for a session that belongs to nobody, or that b differs from only in
	// being Pending no more, and returns whom it belongs to then: of two that claim it at
	// once both learn the same one.
	Claim(ctx context.Context, sessionID string, b Binding) (Binding, error)
	// Owner returns whom a session belongs to, and false for one that it does not know. It
	// counts as a use of the session.
	Owner(ctx context.Context, sessionID string) (b Binding, ok bool, err error)
	// Live returns how many sessions of a person have been used in the last half hour.
	Live(ctx context.Context, person string) (int, error)
	// Release forgets a session if it belongs to b, all of it: a pending claim that is taken
	// back leaves alone what has been opened or accepted meanwhile.
	Release(ctx context.Context, sessionID string, b Binding) error
}

// SessionOwner says whom a session belongs to.
type SessionOwner int

const (
	// OwnerPerson is the person, through whichever application: one that registers again to
	// ask for more scope goes on in its session. Each request is judged by its own token.
	OwnerPerson SessionOwner = iota
	// OwnerClient is the person with one application; another one gets 404.
	OwnerClient
)

const (
	memorySessions = 10_000
	sessionIdle    = 24 * time.Hour
	sessionLive    = 30 * time.Minute
)

// NewMemorySessions returns a binder that remembers up to size sessions (default
// 10,000) for a day after their last use. When there are more, whoever has most loses
// the one that rests longest, so that nobody can push out the sessions of others by
// opening many. A forgotten session belongs to the person whose use of it the server
// accepts next; an MCP library that holds its own record of the user, as the Go SDK does,
// refuses others.
func NewMemorySessions(size int) SessionBinder { return newMemory(size, time.Now) }

func newMemory(size int, now func() time.Time) *memory {
	if size <= 0 {
		size = memorySessions
	}
	return &memory{size: size, now: now, byID: map[string]*list.Element{}, people: map[string]*list.List{}}
}

type memory struct {
	size int
	now  func() time.Time

	mu     sync.Mutex               // guards what follows
	byID   map[string]*list.Element // of *binding
	people map[string]*list.List    // of *entry, the most recently used first; none is empty
}

type entry struct {
	id string
	Binding
	used time.Time
}

func (m *memory) Open(_ context.Context, id string, b Binding) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byID[id]; e != nil {
		m.drop(e)
	}
	m.put(id, b)
	return nil
}

func (m *memory) Claim(_ context.Context, id string, b Binding) (Binding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.find(id); e != nil {
		has, pending := e.Value.(*entry), b
		if pending.Pending = true; has.Binding == pending {
			has.Binding = b
		}
		return has.Binding, nil
	}
	m.put(id, b)
	return b, nil
}

func (m *memory) put(id string, b Binding) {
	if m.people[b.Person] == nil {
		m.people[b.Person] = list.New()
	}
	m.byID[id] = m.people[b.Person].PushFront(&entry{id, b, m.now()})
	if len(m.byID) > m.size {
		m.evict()
	}
}

func (m *memory) Owner(_ context.Context, id string) (Binding, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(id)
	if e == nil {
		return Binding{}, false, nil
	}
	b := e.Value.(*entry)
	b.used = m.now()
	m.people[b.Person].MoveToFront(e)
	return b.Binding, true, nil
}

func (m *memory) Live(_ context.Context, person string) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.people[person]
	if own == nil {
		return 0, nil
	}
	since := m.now().Add(-sessionLive)
	for e := own.Front(); e != nil && e.Value.(*entry).used.After(since); e = e.Next() {
		n++
	}
	return n, nil
}

func (m *memory) Release(_ context.Context, id string, b Binding) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byID[id]; e != nil && e.Value.(*entry).Binding == b {
		m.drop(e)
	}
	return nil
}

// find drops a session that nobody has used for too long.
func (m *memory) find(id string) *list.Element {
	e := m.byID[id]
	if e != nil && m.now().Sub(e.Value.(*entry).used) > sessionIdle {
		m.drop(e)
		return nil
	}
	return e
}

// evict looks at every person, which only a full table costs.
func (m *memory) evict() {
	var most *list.List
	rests := func(l *list.List) time.Time { return l.Back().Value.(*entry).used }
	for _, l := range m.people {
		if most == nil || l.Len() > most.Len() || l.Len() == most.Len() && rests(l).Before(rests(most)) {
			most = l
		}
	}
	m.drop(most.Back())
}

func (m *memory) drop(e *list.Element) {
	b := e.Value.(*entry)
	delete(m.byID, b.id)
	own := m.people[b.Person]
	if own.Remove(e); own.Len() == 0 {
		delete(m.people, b.Person)
	}
}
