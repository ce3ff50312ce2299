package bounded

import "time"

// entry is a value in a map, linked into the line of its owner.
type entry[K comparable, V any] struct {
	key         K
	value       V
	used, until time.Time // until: zero if it never expires
	line        *line[K, V]
	prev, next  *entry[K, V]
}

func (e *entry[K, V]) ended(now time.Time) bool { return !e.until.IsZero() && !now.Before(e.until) }

// line holds the entries of one owner, the most recently used first.
type line[K comparable, V any] struct {
	owner       any
	front, back *entry[K, V]
	length      int
}

func (l *line[K, V]) push(e *entry[K, V]) {
	e.prev, e.next = nil, l.front
	if l.front != nil {
		l.front.prev = e
	} else {
		l.back = e
	}
	l.front = e
	l.length++
}

func (l *line[K, V]) remove(e *entry[K, V]) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.front = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.back = e.prev
	}
	l.length--
}

func (l *line[K, V]) toFront(e *entry[K, V]) {
	if l.front != e {
		l.remove(e)
		l.push(e)
	}
}
