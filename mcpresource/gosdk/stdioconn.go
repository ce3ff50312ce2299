package gosdk

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// stdio is the state that the two eras of one process share: lines, and the ids of calls.
type stdio struct {
	server *mcp.Server
	in     io.ReadCloser
	most   int
	extra  *mcp.RequestExtra // nil without a caller
	lines  chan line

	closing sync.Once
	closed  chan struct{}

	// Nil until the first request of the era. Only serve uses them.
	older, modern *stdioConn
	inflight      *inflight

	writing sync.Mutex // guards out
	out     io.Writer
}

// serve reads lines until the end of input, an error of the output, or the end of ctx.
func (c *stdio) serve(ctx context.Context) error {
	err := c.take(ctx)
	c.finish(ctx, err)
	c.close()
	for _, era := range []*stdioConn{c.older, c.modern} {
		if era != nil {
			if failed := era.session.Close(); err == nil {
				err = failed
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (c *stdio) take(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.closed: // by a session
			return nil
		case l := <-c.lines:
			if err := c.accept(ctx, l); err != nil {
				return err
			}
		}
	}
}

func (c *stdio) close() {
	c.closing.Do(func() {
		close(c.closed)
		_ = c.in.Close() // reading has ended
	})
}

// lastAnswers is how long calls may continue after the end of input. A client that closes the input
// wants the server to end, but still expects its last responses.
const lastAnswers = time.Second

// finish waits for the last responses: the SDK cancels all calls when Read fails.
func (c *stdio) finish(ctx context.Context, err error) {
	if !errors.Is(err, io.EOF) {
		return
	}
	late := time.NewTimer(lastAnswers)
	defer late.Stop()
	select {
	case <-c.inflight.rested():
	case <-late.C:
	case <-c.closed:
	case <-ctx.Done():
	}
}

// accept passes on the messages of a line, and answers a line that is not a message. An error ends
// the connection.
func (c *stdio) accept(ctx context.Context, l line) error {
	switch {
	case errors.Is(l.err, errLongLine):
		return c.refuse(&refusal{
			code: jsonrpc.CodeParseError, text: fmt.Sprintf("A line has at most %d bytes.", c.most),
		})
	case l.err != nil:
		return l.err
	}
	text := bytes.TrimSpace(l.text)
	if len(text) == 0 {
		return nil
	}
	b, refused := look(text)
	if refused != nil {
		return c.refuse(refused)
	}
	if b.batch {
		return c.acceptBatch(ctx, b, text)
	}
	refused, err := c.dispatch(ctx, b.messages[0], text, nil)
	if refused != nil {
		return c.refuse(refused)
	}
	return err
}

// acceptBatch accepts a batch, which only 2025-03-26 supports (JSON-RPC 2.0 §6, RS-83).
func (c *stdio) acceptBatch(ctx context.Context, b body, text []byte) error {
	if c.inflight.negotiated() != protocol.Rev20250326 || slices.ContainsFunc(b.messages, message.isModern) {
		return c.refuse(invalid(nil, "Batches are not part of this revision."))
	}
	if refused := b.checkBatch(); refused != nil {
		return c.refuse(refused)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return c.refuse(&refusal{http.StatusBadRequest, jsonrpc.CodeParseError, "The line is not JSON.", nil})
	}
	own := &batch{left: 1, ids: map[jsonrpc.ID]bool{}} // incomplete until every message was read
	for i, m := range b.messages {
		refused, err := c.dispatch(ctx, m, raw[i], own)
		if err != nil {
			return err
		}
		if refused != nil {
			c.inflight.mu.Lock()
			own.answers = append(own.answers, errorMessage(refused.id, refused.code, refused.text))
			c.inflight.mu.Unlock()
		}
	}
	c.inflight.mu.Lock()
	own.left--
	var answer []byte
	if own.left == 0 && len(own.answers) > 0 { // all were refused
		answer, _ = json.Marshal(own.answers)
	}
	c.inflight.mu.Unlock()
	return c.send(answer)
}

// dispatch passes one message to the session of its era.
func (c *stdio) dispatch(ctx context.Context, m message, raw []byte, b *batch) (*refusal, error) {
	msg, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return invalid(m.ID, "The message is not valid JSON-RPC 2.0."), nil
	}
	modern, call := false, false
	if r, ok := msg.(*jsonrpc.Request); ok {
		if c.extra != nil {
			own := *c.extra
			own.TokenInfo = carrying(own.TokenInfo, m.taskMembers())
			r.Extra = &own
		}
		if r.Method == "notifications/cancelled" {
			modern = c.inflight.cancel(m)
		}
		if call = r.IsCall(); call {
			modern = m.isModern()
			if !c.inflight.begin(r, m, b) {
				// Without the id: its response is still pending.
				return invalid(nil, fmt.Sprintf("The id %s is in use.", m.ID)), nil
			}
		}
	}
	to := &c.older
	if modern {
		to = &c.modern
	}
	if *to == nil {
		if !call { // it concerns no request of this connection (RS-86)
			return nil, nil
		}
		if *to, err = c.connect(ctx); err != nil {
			return nil, err
		}
	}
	select {
	case (*to).messages <- msg:
	case <-ctx.Done():
	case <-c.closed:
	}
	return nil, nil
}

func (c *stdio) refuse(refused *refusal) error {
	return c.send(errorMessage(refused.id, refused.code, refused.text))
}

// send writes one line (RS-81); JSON contains no line breaks.
func (c *stdio) send(text []byte) error {
	if text == nil {
		return nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}

// stdioConn is the connection of one era's session.
type stdioConn struct {
	*stdio
	id       string
	messages chan jsonrpc.Message
	session  *mcp.ServerSession
}

// newID returns an unguessable session id (SP-14, RS-94).
func newID() string { return rand.Text() }

func (c *stdio) connect(ctx context.Context) (era *stdioConn, err error) {
	era = &stdioConn{stdio: c, id: newID(), messages: make(chan jsonrpc.Message)}
	era.session, err = c.server.Connect(ctx, era, nil)
	return era, err
}

// Connect implements mcp.Transport.
func (c *stdioConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *stdioConn) SessionID() string { return c.id }

// Close implements mcp.Connection. It ends both eras.
func (c *stdioConn) Close() error {
	c.close()
	return nil
}

// Read implements mcp.Connection. Only the end of the input ends the connection.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, io.EOF
	case m := <-c.messages:
		return m, nil
	}
}

// Write implements mcp.Connection.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch m := msg.(type) {
	case *jsonrpc.Response:
		text, err := c.inflight.end(m)
		if err != nil {
			return err
		}
		return c.send(text)
	case *jsonrpc.Request:
		if c.inflight.mutes(m) {
			return nil
		}
	}
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	return c.send(text)
}
