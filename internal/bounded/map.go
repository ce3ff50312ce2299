package bounded

import (
	"sync"
	"time"
)

// coarse is how exactly Get keeps the order of use: within it, a hit changes nothing, and readers
// do not wait for each other.
const coarse = time.Second

// Map holds up to a number of entries, and forgets the least recently used one when there is one
// more. An entry may have an end, after which it is not found. Where entries have owners, the owner
// with the most entries loses one, so that no owner pushes out the entries of others by adding many.
// It is safe for concurrent use, and a hit allocates nothing.
type Map[K comparable, V any] struct {
	size  int
	now   func() time.Time
	owner func(V) any // nil: all entries are in one line

	mu      sync.RWMutex // guards what follows
	entries map[K]*entry[K, V]
	lines   map[any]*line[K, V] // of each owner; none is empty
}

// New returns a map of size entries; of none, it remembers nothing.
func New[K comparable, V any](size int, now func() time.Time) *Map[K, V] {
	return NewShared[K, V](size, now, nil)
}

// NewShared returns a map of size entries that belong to owners, which must be comparable. Of
// owners with equally many, the one whose entry has rested longest loses it. Adding to a full map
// takes time in proportion to the number of owners.
func NewShared[K comparable, V any](size int, now func() time.Time, owner func(V) any) *Map[K, V] {
	return &Map[K, V]{size: size, now: now, owner: owner, entries: map[K]*entry[K, V]{}, lines: map[any]*line[K, V]{}}
}

// Get returns the value of a key. It counts as a use, to within a second.
func (m *Map[K, V]) Get(key K) (v V, ok bool) { return m.GetAt(key, m.now()) }

// GetAt is Get for a caller who knows what time it is: to read the clock can cost as much as the rest.
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

// Use returns the value of a key, and moves its end to until.
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

// Put sets the value of a key until it ends; the zero time is no end. It counts as a use.
func (m *Map[K, V]) Put(key K, v V, until time.Time) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil {
		m.remove(e)
	}
	m.insert(key, v, now, until)
}

// Add is Put for a key that has no value; else it changes nothing and returns false.
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

// Len returns the number of entries, among them some that have ended.
func (m *Map[K, V]) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.entries)
}

// Count returns how many entries of an owner have been used since then.
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

// live returns an entry, unless it has ended. The caller holds the lock.
func (m *Map[K, V]) live(key K, now time.Time) *entry[K, V] {
	e := m.entries[key]
	if e != nil && e.ended(now) {
		m.remove(e)
		return nil
	}
	return e
}

// insert adds an entry for a key that has none. What has ended goes as it becomes the last of its
// line, so that a rest empties the map, too.
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

// longest returns the line of the owner with the most entries; of several, the one whose last entry
// has rested longest.
func (m *Map[K, V]) longest() (most *line[K, V]) {
	for _, l := range m.lines {
		if most == nil || l.length > most.length || l.length == most.length && l.back.used.Before(most.back.used) {
			most = l
		}
	}
	return most
}
