package limits

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// Binding is the owner of an MCP session: the user for whom the server opened it in response to
// initialize. For everyone else the session does not exist (404). Each request is checked by its
// own token. So another application of the same user may continue the session, as clients do that
// register again for more scopes; events then name the opener.
type Binding struct {
	Person string // see Principal.Person
	Client string // the application that opened it, or first used it
	// Pending marks a claim that the server has not accepted yet. Binders must store it.
	Pending bool
	// ShowsLinks reports whether the client declared, on opening the session, that it can show
	// links to its user (elicitation in mode url). Binders must store it.
	ShowsLinks bool
}

// SessionBinder stores the owners of sessions. For a server with several replicas and sticky
// sessions, the one in memory is sufficient.
type SessionBinder interface {
	// Open records the owner of a session that the server opened, and replaces any other.
	Open(ctx context.Context, sessionID string, b Binding) error
	// Claim records b for a session without an owner, or with a binding that differs from b only in
	// Pending. It returns the binding that then applies: two concurrent claims return the same one.
	Claim(ctx context.Context, sessionID string, b Binding) (Binding, error)
	// Owner returns the owner of a session; ok is false if the session is unknown. It counts as a
	// use of the session.
	Owner(ctx context.Context, sessionID string) (b Binding, ok bool, err error)
	// Live returns the number of sessions that a user has used in the last half hour.
	Live(ctx context.Context, person string) (int, error)
	// Release removes a session if its binding equals b in all fields. So withdrawing a pending
	// claim does not affect a session that was opened or accepted meanwhile.
	Release(ctx context.Context, sessionID string, b Binding) error
}

const (
	memorySessions = 10_000
	sessionIdle    = 24 * time.Hour
	SessionLive    = 30 * time.Minute
)

// NewMemorySessions returns a binder that stores up to size sessions (default 10,000), each for a
// day after its last use. When it is full, the user with the most sessions loses the least recently
// used one, so that a user cannot evict the sessions of others. A forgotten session belongs to the
// next user whose request the server accepts in it. MCP libraries that record the user themselves,
// such as the Go SDK, refuse others.
func NewMemorySessions(size int) SessionBinder { return NewMemory(size, time.Now) }

func NewMemory(size int, now func() time.Time) *memory {
	if size <= 0 {
		size = memorySessions
	}
	return &memory{now: now, sessions: bounded.NewShared[string](size, now, func(b Binding) any { return b.Person })}
}

type memory struct {
	now      func() time.Time
	sessions *bounded.Map[string, Binding]

	mu sync.Mutex // held while a binding is read and changed
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
	return m.sessions.Count(person, m.now().Add(-SessionLive)), nil
}

func (m *memory) Release(_ context.Context, id string, b Binding) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if has, ok := m.sessions.Get(id); ok && has == b {
		m.sessions.Drop(id)
	}
	return nil
}
