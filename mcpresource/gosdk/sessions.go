package gosdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// sessions stores facts about sessions that the SDK does not expose: their owner and negotiated
// revision. It removes a session when the SDK does, because its event store is notified.
type sessions struct {
	guard *mcpresource.Guard

	mu   sync.Mutex // guards byID and its elements
	byID map[string]*session
}

type session struct {
	owner   string // see Guard.Owner; "" if opened by a public method and never used with a token
	key     string // of its events
	version string // "" until it is negotiated
}

func newSessions(g *mcpresource.Guard) *sessions {
	return &sessions{guard: g, byID: map[string]*session{}}
}

// open returns the key of a session's events. The first caller becomes the owner.
func (s *sessions) open(ctx context.Context, id string) string {
	owner := s.caller(ctx)
	if id == "" { // the server issues no ids: without an id a session cannot be shared
		return eventKey(owner, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.byID[id]
	if own == nil {
		own = &session{owner: owner, key: eventKey(owner, id)}
		s.byID[id] = own
	}
	if own.owner == "" {
		own.owner = owner
	}
	return own.key
}

// owned returns the key of a session's events if the caller in ctx is its owner.
func (s *sessions) owned(ctx context.Context, id string) (key string, ok bool) {
	owner := s.caller(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.byID[id]
	if own == nil || own.owner != "" && own.owner != owner {
		return "", false
	}
	return own.key, true
}

// key returns the key of a session's events for the server, which may write outside requests of the
// owner.
func (s *sessions) key(id string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.byID[id]; own != nil {
		return own.key, true
	}
	return "", false
}

// negotiated sets the revision of a session opened here. For other sessions this process would not
// learn of their end.
func (s *sessions) negotiated(id, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.byID[id]; own != nil {
		own.version = version
	}
}

func (s *sessions) version(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.byID[id]; own != nil {
		return own.version
	}
	return ""
}

func (s *sessions) ended(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

func (s *sessions) caller(ctx context.Context) string {
	p, ok := mcpresource.FromContext(ctx)
	if !ok {
		return ""
	}
	return s.guard.Owner(p)
}

// eventKey returns a key that begins with the caller. So in a shared store, no caller reaches
// another's events by knowing or choosing a session id (MCP Security Best Practices, "Session
// Hijacking": key by <user>:<session>). The caller is hashed because stores may restrict
// characters.
func eventKey(owner, id string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:16]) + ":" + id
}

var errForeignEvents = errors.New("gosdk: no such stream")

// events is an event store that prefixes keys with the principal.
type events struct {
	inner    mcp.EventStore
	sessions *sessions
}

func (e *events) Open(ctx context.Context, sessionID, streamID string) error {
	return e.inner.Open(ctx, e.sessions.open(ctx, sessionID), streamID)
}

func (e *events) Append(ctx context.Context, sessionID, streamID string, data []byte) error {
	key, ok := e.sessions.key(sessionID)
	if !ok {
		key = e.sessions.open(ctx, sessionID)
	}
	return e.inner.Append(ctx, key, streamID, data)
}

// After replays events to the owner only. The guard refuses others already; this check does not
// depend on it.
func (e *events) After(ctx context.Context, sessionID, streamID string, index int) iter.Seq2[[]byte, error] {
	key, ok := e.sessions.owned(ctx, sessionID)
	if !ok {
		return func(yield func([]byte, error) bool) { yield(nil, errForeignEvents) }
	}
	return e.inner.After(ctx, key, streamID, index)
}

func (e *events) SessionClosed(ctx context.Context, sessionID string) error {
	key, ok := e.sessions.key(sessionID)
	if !ok {
		return nil
	}
	e.sessions.ended(sessionID)
	return e.inner.SessionClosed(ctx, key)
}
