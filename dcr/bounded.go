package dcr

import "sync"

// bounded is a map that never holds more than max entries: a full one loses arbitrary
// entries, down to three quarters, each of which is one look elsewhere to have again.
// It is safe for concurrent use.
type bounded[V any] struct {
	max int

	mu      sync.Mutex // guards entries
	entries map[string]V
}

func newBounded[V any](limit int) *bounded[V] {
	return &bounded[V]{max: limit, entries: map[string]V{}}
}

func (b *bounded[V]) get(key string) (V, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.entries[key]
	return v, ok
}

func (b *bounded[V]) put(key string, v V) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.entries[key]; !ok && len(b.entries) >= b.max {
		for other := range b.entries {
			if len(b.entries) <= b.max*3/4 {
				break
			}
			delete(b.entries, other)
		}
	}
	b.entries[key] = v
}

func (b *bounded[V]) drop(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, key)
}
