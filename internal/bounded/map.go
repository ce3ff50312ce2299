package bounded

import (
	"sync"
	"time"
)

// coarse is the precision of the order of use. Get takes the write lock only if the last use is
// older.
const coarse = time.Second

// Map holds up to a fixed number of entries and forgets the least recently used. Entries can
// expire. If they have owners, the owner with the most entries loses one, so that no owner
// displaces the entries of others. It is safe for concurrent use, and a hit allocates nothing.
type Map[K comparable, V any] struct {
	size  int
	now   func() time.Time
	owner func(V) any // nil: all entries are in one line

	mu      sync.RWMutex // guards the fields below
	entries map[K]*entry[K, V]
	lines   map[any]*line[K, V] // by owner; never empty
}

// New returns a map of up to size entries. With size 0 it stores nothing.
func New[K comparable, V any](size int, now func() time.Time) *Map[K, V] {
	return NewShared[K, V](size, now, nil)
}

// NewShared returns a map of up to size entries with owners, which must be comparable. Among equal
// owners, the owner of the least recently used entry loses it. Adding to a full map takes time
// proportional to the number of owners.
func NewShared[K comparable, V any](size int, now func() time.Time, owner func(V) any) *Map[K, V] {
	return &Map[K, V]{size: size, now: now, owner: owner, entries: map[K]*entry[K, V]{}, lines: map[any]*line[K, V]{}}
}

// Get returns the value of a key. It counts as a use, with a precision of a second.
func (m *Map[K, V]) Get(key K) (v V, ok bool) { return m.GetAt(key, m.now()) }

// GetAt is Get with a known time: reading the clock can cost as much as the lookup.
func (m *Map[K, V]) GetAt(key K, now time.Time) (v V, ok bool) {
	m.mu.RLock()
	e := m.entries[key]
	if e == nil {
		m.mu.RUnlock()
		return v, false
	}
	v, ended, rested := e.value, e.ended(now), now.Sub(e.used) >= coarse
	m.mu.RUnlock()
	if !ended && !rested {
		return v, true
	}
	return m.use(key, now, nil)
}

// Use returns the value of a key and sets its expiry time.
func (m *Map[K, V]) Use(key K, until time.Time) (V, bool) { return m.use(key, m.now(), &until) }

func (m *Map[K, V]) use(key K, now time.Time, until *time.Time) (v V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.live(key, now)
	if e == nil {
		return v, false
	}
	if until != nil {
		e.until = *until
	}
	e.used = now
	e.line.toFront(e)
	return e.value, true
}

// Put sets a value and its expiry time (zero: never). It counts as a use.
func (m *Map[K, V]) Put(key K, v V, until time.Time) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil {
		m.remove(e)
	}
	m.insert(key, v, now, until)
}

// Add is Put for a key without a value. Otherwise it changes nothing and returns false.
func (m *Map[K, V]) Add(key K, v V, until time.Time) bool {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live(key, now) != nil {
		return false
	}
	m.insert(key, v, now, until)
	return true
}

// Drop forgets a key.
func (m *Map[K, V]) Drop(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil {
		m.remove(e)
	}
}

// Len returns the number of entries, including expired ones that are not yet removed.
func (m *Map[K, V]) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.entries)
}

// Count returns how many entries of an owner were used after since.
func (m *Map[K, V]) Count(owner any, since time.Time) (n int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l := m.lines[owner]
	if l == nil {
		return 0
	}
	for e := l.front; e != nil && e.used.After(since); e = e.next {
		n++
	}
	return n
}

// live returns an entry, or nil if it expired. The caller holds the lock.
func (m *Map[K, V]) live(key K, now time.Time) *entry[K, V] {
	e := m.entries[key]
	if e != nil && e.ended(now) {
		m.remove(e)
		return nil
	}
	return e
}

// insert adds an entry for a new key. It first removes expired entries from the end of the owner's
// line, so the map shrinks after a quiet time.
func (m *Map[K, V]) insert(key K, v V, now, until time.Time) {
	e := &entry[K, V]{key: key, value: v, used: now, until: until}
	if m.size <= 0 || e.ended(now) {
		return
	}
	e.line = m.lineOf(v)
	for l := e.line; l.back != nil && l.back.ended(now); {
		delete(m.entries, l.back.key)
		l.remove(l.back)
	}
	m.entries[key] = e
	e.line.push(e)
	if len(m.entries) > m.size {
		m.remove(m.longest().back)
	}
}

func (m *Map[K, V]) remove(e *entry[K, V]) {
	delete(m.entries, e.key)
	if e.line.remove(e); e.line.length == 0 {
		delete(m.lines, e.line.owner)
	}
}

func (m *Map[K, V]) lineOf(v V) *line[K, V] {
	var owner any
	if m.owner != nil {
		owner = m.owner(v)
	}
	l := m.lines[owner]
	if l == nil {
		l = &line[K, V]{owner: owner}
		m.lines[owner] = l
	}
	return l
}

// longest returns the line with the most entries. Among equals, it returns the line whose last
// entry was used earliest.
func (m *Map[K, V]) longest() (most *line[K, V]) {
	for _, l := range m.lines {
		if most == nil || l.length > most.length || l.length == most.length && l.back.used.Before(most.back.used) {
			most = l
		}
	}
	return most
}
