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

// sessions remembers what the SDK does not tell about its sessions: whose they are, and
// which revision was negotiated. It holds as many as the SDK does, because it learns
// when one ends.
type sessions struct {
	guard *mcpresource.Guard

	mu   sync.Mutex // guards byID and what it points to
	byID map[string]*session
}

type session struct {
	owner   string // see Guard.Owner; "" for one that a public method opened and no caller with a token has used
	key     string // of its events
	version string // "" until it is negotiated
}

func newSessions(g *mcpresource.Guard) *sessions {
	return &sessions{guard: g, byID: map[string]*session{}}
}

// open returns the key of a session's events. The first caller becomes its owner.
func (s *sessions) open(ctx context.Context, id string) string {
	owner := s.caller(ctx)
	if id == "" { // the server hands out no ids: what cannot be named cannot be shared
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

// owned returns the key of a session's events, but only to its owner.
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

// key returns the key of a session's events for the server itself, which may write
// when no request of the owner is there.
func (s *sessions) key(id string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.byID[id]; own != nil {
		return own.key, true
	}
	return "", false
}

// negotiated is for sessions that were opened here. This process would not learn when others end.
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

// eventKey begins with the caller, so that in a store that several servers share no caller reaches
// another's events by knowing, or choosing, a session id (MCP Security Best Practices, "Session
// Hijacking": key by <user>:<session>). The caller is hashed because stores have their own ideas
// about characters.
func eventKey(owner, id string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:16]) + ":" + id
}

var errForeignEvents = errors.New("gosdk: no such stream")

// events is an event store whose keys carry the principal.
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

// After replays to the owner. The guard refuses others before; this holds without it.
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
