package mcpresource

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// SessionBinder remembers whom a session of the protocol belongs to. A server with
// several replicas and sticky sessions needs no other than the one in memory.
type SessionBinder interface {
	// Bind records the owner of a session, unless it has one: of two that bind the same
	// session at once one stays the owner, and neither gets an error.
	Bind(ctx context.Context, sessionID, owner string) error
	// Owner returns the owner, and false for a session it does not know. It counts as a
	// use of the session.
	Owner(ctx context.Context, sessionID string) (owner string, ok bool, err error)
	// Live returns how many sessions of owner have been used in the last half hour.
	Live(ctx context.Context, owner string) (int, error)
	// Release forgets a session that its owner has ended.
	Release(ctx context.Context, sessionID string) error
}

const (
	memorySessions = 10_000
	sessionIdle    = 24 * time.Hour
	sessionLive    = 30 * time.Minute
)

// NewMemorySessions returns a binder that remembers up to size sessions (default
// 10,000) for a day after their last use. When there are more, whoever has most loses
// the one that rests longest, so that nobody can push out the sessions of others by
// opening many. A forgotten session is bound again to whoever uses it next; an MCP
// library that holds its own record of the user, as the Go SDK does, refuses others.
func NewMemorySessions(size int) SessionBinder { return newMemory(size, time.Now) }

func newMemory(size int, now func() time.Time) *memory {
	if size <= 0 {
		size = memorySessions
	}
	return &memory{size: size, now: now, byID: map[string]*list.Element{}, owners: map[string]*list.List{}}
}

type memory struct {
	size int
	now  func() time.Time

	mu     sync.Mutex               // guards what follows
	byID   map[string]*list.Element // of *binding
	owners map[string]*list.List    // of *binding, the most recently used first; none is empty
}

type binding struct {
	id, owner string
	used      time.Time
}

func (m *memory) Bind(_ context.Context, id, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.find(id) != nil {
		return nil // the first owner stays
	}
	if m.owners[owner] == nil {
		m.owners[owner] = list.New()
	}
	m.byID[id] = m.owners[owner].PushFront(&binding{id, owner, m.now()})
	if len(m.byID) > m.size {
		m.evict()
	}
	return nil
}

func (m *memory) Owner(_ context.Context, id string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(id)
	if e == nil {
		return "", false, nil
	}
	b := e.Value.(*binding)
	b.used = m.now()
	m.owners[b.owner].MoveToFront(e)
	return b.owner, true, nil
}

func (m *memory) Live(_ context.Context, owner string) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.owners[owner]
	if own == nil {
		return 0, nil
	}
	since := m.now().Add(-sessionLive)
	for e := own.Front(); e != nil && e.Value.(*binding).used.After(since); e = e.Next() {
		n++
	}
	return n, nil
}

func (m *memory) Release(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byID[id]; e != nil {
		m.drop(e)
	}
	return nil
}

// find drops a session that nobody has used for too long.
func (m *memory) find(id string) *list.Element {
	e := m.byID[id]
	if e != nil && m.now().Sub(e.Value.(*binding).used) > sessionIdle {
		m.drop(e)
		return nil
	}
	return e
}

// evict looks at every owner, which only a full table costs.
func (m *memory) evict() {
	var most *list.List
	rests := func(l *list.List) time.Time { return l.Back().Value.(*binding).used }
	for _, l := range m.owners {
		if most == nil || l.Len() > most.Len() || l.Len() == most.Len() && rests(l).Before(rests(most)) {
			most = l
		}
	}
	m.drop(most.Back())
}

func (m *memory) drop(e *list.Element) {
	b := e.Value.(*binding)
	delete(m.byID, b.id)
	own := m.owners[b.owner]
	if own.Remove(e); own.Len() == 0 {
		delete(m.owners, b.owner)
	}
}
