package authserver

import "sync"

const (
	// statusBudget is the memory for lists in bytes: about fifty thousand lists, with six billion
	// grants.
	statusBudget = 64 << 20
	statusBeside = 512 // overhead of a list in addition to its token
)

// statusShelf caches as many lists as fit. It does not use bounded.Map, which counts entries and
// evicts the least recently used one. Lists differ in size by a factor of a hundred, so the budget
// is in bytes. When the budget is used up, lists without a revoked grant are evicted first, however
// recently they were requested: strangers can request any number of them, and they are the cheapest
// to create.
type statusShelf struct {
	budget int

	mu           sync.Mutex // guards the following fields
	size         int
	quiet, other map[int64]*statusList
}

func newStatusShelf(budget int) statusShelf {
	return statusShelf{budget: budget, quiet: map[int64]*statusList{}, other: map[int64]*statusList{}}
}

func (s *statusShelf) get(n int64) *statusList {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.other[n]; e != nil {
		return e
	}
	return s.quiet[n]
}

func (s *statusShelf) put(n int64, e *statusList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(n)
	for _, lists := range []map[int64]*statusList{s.quiet, s.other} {
		for goes := range lists {
			if s.size+len(e.token)+statusBeside <= s.budget {
				break
			}
			s.remove(goes)
		}
	}
	if e.quiet {
		s.quiet[n] = e
	} else {
		s.other[n] = e
	}
	s.size += len(e.token) + statusBeside
}

func (s *statusShelf) remove(n int64) {
	for _, lists := range []map[int64]*statusList{s.quiet, s.other} {
		if e := lists[n]; e != nil {
			s.size -= len(e.token) + statusBeside
			delete(lists, n)
		}
	}
}
