package mcpresource

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// Binding is whom a session of the protocol belongs to: the person for whom the server has opened
// it, by its answer to initialize. For all others there is no such session (404). Each request is
// judged by its own token, so another application of the same person may go on in it, as clients
// do that register again for more scope; events then say which one opened it.
type Binding struct {
	Person string // see Principal.Person
	Client string // the application that opened it, or was the first to use it
	// Pending marks a claim that the server has not accepted yet. Binders store it.
	Pending bool
	// ShowsLinks is what the client said when it opened the session: it can show a link to its person (elicitation in
	// mode url). Binders store it.
	ShowsLinks bool
}

// SessionBinder remembers whom sessions belong to. A server with several replicas and
// sticky sessions needs no other than the one in memory.
type SessionBinder interface {
	// Open records whom the server has opened a session for, in place of any other.
	Open(ctx context.Context, sessionID string, b Binding) error
	// Claim records b for a session without an owner, or one whose binding differs from b only in
	// being Pending, and returns the binding that then holds: two concurrent claims return the same
	// one.
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

// NewMemorySessions returns a binder that remembers up to size sessions (default 10,000) for a day
// after their last use. When there are more, the person with most loses the one that rests longest,
// so that a person cannot push out the sessions of others by opening many. A forgotten session
// belongs to the person whose use of it the server accepts next; an MCP library that holds its own
// record of the user, as the Go SDK does, refuses others.
func NewMemorySessions(size int) SessionBinder { return newMemory(size, time.Now) }

func newMemory(size int, now func() time.Time) *memory {
	if size <= 0 {
		size = memorySessions
	}
	return &memory{now: now, sessions: bounded.NewShared[string](size, now, func(b Binding) any { return b.Person })}
}

type memory struct {
	now      func() time.Time
	sessions *bounded.Map[string, Binding]

	mu sync.Mutex // held while a binding is looked at and changed
}

func (m *memory) put(id string, b Binding) { m.sessions.Put(id, b, m.now().Add(sessionIdle)) }

func (m *memory) Open(_ context.Context, id string, b Binding) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(id, b)
	return nil
}

func (m *memory) Claim(_ context.Context, id string, b Binding) (Binding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pending := b
	pending.Pending = true
	if has, ok := m.sessions.Get(id); ok && has != pending {
		return has, nil
	}
	m.put(id, b)
	return b, nil
}

func (m *memory) Owner(_ context.Context, id string) (Binding, bool, error) {
	b, ok := m.sessions.Use(id, m.now().Add(sessionIdle))
	return b, ok, nil
}

func (m *memory) Live(_ context.Context, person string) (int, error) {
	return m.sessions.Count(person, m.now().Add(-sessionLive)), nil
}

func (m *memory) Release(_ context.Context, id string, b Binding) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if has, ok := m.sessions.Get(id); ok && has == b {
		m.sessions.Drop(id)
	}
	return nil
}
