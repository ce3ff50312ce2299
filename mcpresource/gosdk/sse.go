package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk/internal/caller"
)

// SSE returns the HTTP+SSE endpoint of 2024-11-05, for clients that support nothing else. The
// revision is deprecated: serve it only if needed. It must have its own path and Guard, because
// clients compare its URL with the metadata:
//
//	old, err := mcpresource.New(mcpresource.Config{Resource: "https://mcp.example.com/sse", ...})
//	old.Register(mux, adapter.SSE())
//
// Both kinds of request go through the guard: the GET that opens the stream, and each POST of a
// message, which has its own caller. A stream accepts messages only from the principal that opened
// it, and ends with its token. The mcp.SSEHandler of the SDK does none of this.
func (a *Adapter) SSE() http.Handler {
	return &sse{adapter: a, patience: eventTime, byID: map[string]*sseConn{}, owners: map[string]int{}}
}

// maxStreams is the maximum number of streams of one caller.
const maxStreams = 32

// eventTime is the timeout for writing one event to a client.
const eventTime = 30 * time.Second

type sse struct {
	adapter  *Adapter
	patience time.Duration // eventTime, except in tests

	mu     sync.Mutex // guards the fields below
	byID   map[string]*sseConn
	owners map[string]int
}

func (s *sse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("sessionId")
	p, ok := mcpresource.FromContext(r.Context())
	switch {
	case !ok: // a public method, but the session must be bound to a user
		refuse(w, &refusal{http.StatusUnauthorized, protocol.CodeRefused, "Authentication is required.", nil})
	case r.Method == http.MethodGet: // RS-90, as the next
		s.open(w, r, p)
	case r.Method == http.MethodPost && id != "":
		s.post(w, r, p, id)
	default: // newer clients detect this revision by a POST here
		w.Header().Set("Allow", "GET")
		refuse(w, &refusal{
			http.StatusMethodNotAllowed, protocol.CodeRefused, "This is the stream of 2024-11-05: open it with GET.",
			nil,
		})
	}
}

// open serves a stream until its client, its token or the server ends it.
func (s *sse) open(w http.ResponseWriter, r *http.Request, p *mcpresource.Principal) {
	c := &sseConn{
		id: newID(), owner: s.adapter.guard.Owner(p), patience: s.patience, w: w,
		incoming: make(chan jsonrpc.Message), closed: make(chan struct{}), inflight: newInflight(),
	}
	if !s.enter(c) {
		w.Header().Set("Retry-After", "60")
		refuse(w, &refusal{http.StatusTooManyRequests, protocol.CodeRefused, "Too many streams.", nil})
		return
	}
	defer s.leave(c)
	s.adapter.sessions.open(r.Context(), c.id)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	// RS-91
	if c.event("endpoint", []byte(r.URL.EscapedPath()+"?sessionId="+c.id)) != nil {
		return
	}
	// Messages in the session have their own callers, not the one that opened it.
	ctx := mcpresource.NewContext(context.WithoutCancel(r.Context()), nil)
	session, err := s.adapter.server.Connect(ctx, c, nil)
	if err != nil {
		s.adapter.o.Logger.ErrorContext(ctx, "a stream could not be connected", "error", err)
		return
	}
	select {
	case <-r.Context().Done():
	case <-c.closed:
	}
	_ = c.Close()       // before w becomes invalid
	_ = session.Close() // repeats the result of c.Close
}

func (s *sse) enter(c *sseConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[c.owner] >= maxStreams {
		return false
	}
	s.owners[c.owner]++
	s.byID[c.id] = c
	return true
}

func (s *sse) leave(c *sseConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, c.id)
	if s.owners[c.owner]--; s.owners[c.owner] == 0 {
		delete(s.owners, c.owner)
	}
	s.adapter.sessions.ended(c.id)
}

// post accepts one message, with the caller of this request.
func (s *sse) post(w http.ResponseWriter, r *http.Request, p *mcpresource.Principal, id string) {
	s.mu.Lock()
	c := s.byID[id]
	s.mu.Unlock()
	if c == nil || c.owner != s.adapter.guard.Owner(p) { // RS-94; does not reveal whether the session exists
		refuse(w, &refusal{http.StatusNotFound, protocol.CodeRefused, "Session not found.", nil})
		return
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		refuse(w, &refusal{
			http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json.", nil,
		})
		return
	}
	text, err := io.ReadAll(r.Body) // limited by the guard
	if err != nil {
		refuse(w, &refusal{http.StatusBadRequest, jsonrpc.CodeParseError, "The request body could not be read.", nil})
		return
	}
	if refused := c.accept(r, p, text); refused != nil {
		refuse(w, refused)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// sseConn is one stream and the messages posted to it.
type sseConn struct {
	id, owner string
	patience  time.Duration
	incoming  chan jsonrpc.Message
	inflight  *inflight

	closing sync.Once
	closed  chan struct{}

	writing sync.Mutex // guards w, which must not be used after Close
	w       http.ResponseWriter
	done    bool
}

// Connect implements mcp.Transport.
func (c *sseConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SupportsProtocolVersion implements mcp.ProtocolVersionSupporter: 2026-07-28 does not have this
// transport.
func (c *sseConn) SupportsProtocolVersion(v string) bool {
	return !protocol.IsStateless(v) && slices.Contains(mcp.SupportedProtocolVersions(), v)
}

// SessionID implements mcp.Connection.
func (c *sseConn) SessionID() string { return c.id }

func (c *sseConn) accept(r *http.Request, p *mcpresource.Principal, text []byte) *refusal {
	b, refused := look(text)
	switch {
	case refused != nil:
		return refused
	case b.batch:
		return invalid(nil, "Batches are not part of this revision.")
	}
	m := b.messages[0]
	msg, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return invalid(m.ID, "The message is not valid JSON-RPC 2.0.")
	}
	if q, ok := msg.(*jsonrpc.Request); ok {
		if v := m.metaVersion(); protocol.IsStateless(v) && q.IsCall() {
			return c.tooNew(q.ID, v)
		}
		header := r.Header.Clone()
		header.Del("Authorization")
		q.Extra = &mcp.RequestExtra{TokenInfo: caller.TokenInfo(p, c.owner), Header: header}
		if q.Method == "notifications/cancelled" {
			c.inflight.cancel(m)
		}
		if q.IsCall() && !c.inflight.begin(q, m, nil) {
			return invalid(m.ID, "The id is in use.")
		}
	}
	select {
	case c.incoming <- msg:
		return nil
	case <-c.closed:
		return &refusal{http.StatusNotFound, protocol.CodeRefused, "Session not found.", nil}
	}
}

// tooNew tells a client that tries the newest revision first to use an older one (RS-142). It
// answers on the stream, where clients of this transport expect responses.
func (c *sseConn) tooNew(id jsonrpc.ID, version string) *refusal {
	older := slices.DeleteFunc(mcp.SupportedProtocolVersions(), protocol.IsStateless)
	data, _ := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: older, Requested: version}) // strings
	answer, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{
		Code: mcp.CodeUnsupportedProtocolVersion, Message: "This transport is older than that revision.", Data: data,
	}})
	if err != nil || c.event("message", answer) != nil {
		return &refusal{http.StatusNotFound, protocol.CodeRefused, "Session not found.", nil}
	}
	return nil
}

// Read implements mcp.Connection.
func (c *sseConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, io.EOF
	case m := <-c.incoming:
		return m, nil
	}
}

// Write implements mcp.Connection.
func (c *sseConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var data []byte
	var err error
	switch m := msg.(type) {
	case *jsonrpc.Response:
		data, err = c.inflight.end(m)
	case *jsonrpc.Request:
		if !c.inflight.mutes(m) {
			data, err = jsonrpc.EncodeMessage(m)
		}
	}
	if err != nil || data == nil {
		return err
	}
	return c.event("message", data) // RS-92
}

var errStreamEnded = errors.New("gosdk: the stream has ended")

// event writes one event; JSON and paths contain no line breaks. If the client does not read, the
// stream ends: otherwise it would outlive its token and the server.
func (c *sseConn) event(name string, data []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.done {
		return errStreamEnded
	}
	deadline := http.NewResponseController(c.w).SetWriteDeadline
	_ = deadline(time.Now().Add(c.patience)) // fails without support for deadlines
	defer func() { _ = deadline(time.Time{}) }()
	if _, err := fmt.Fprintf(c.w, "event: %s\ndata: %s\n\n", name, data); err != nil {
		c.done = true
		c.closing.Do(func() { close(c.closed) })
		return err
	}
	_ = http.NewResponseController(c.w).Flush() // a writer that cannot flush buffers nothing
	return nil
}

// Close implements mcp.Connection.
func (c *sseConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	c.writing.Lock()
	defer c.writing.Unlock()
	c.done = true
	return nil
}
