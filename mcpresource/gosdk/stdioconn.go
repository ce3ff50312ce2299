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
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// stdioConn is a connection by lines.
type stdioConn struct {
	in    io.ReadCloser
	most  int
	id    string
	extra *mcp.RequestExtra // nil without a caller
	lines chan line

	closing sync.Once
	closed  chan struct{}

	queue    []jsonrpc.Message // of a batch; Read is not called twice at once
	inflight *inflight

	writing sync.Mutex // guards out
	out     io.Writer
}

// newID returns the id of a session, which cannot be guessed (SP-14, RS-94).
func newID() string { return rand.Text() }

// SessionID implements mcp.Connection.
func (c *stdioConn) SessionID() string { return c.id }

// Close implements mcp.Connection.
func (c *stdioConn) Close() (err error) {
	c.closing.Do(func() {
		close(c.closed)
		err = c.in.Close()
	})
	return err
}

// Read implements mcp.Connection. No input ends the connection except its end.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			m := c.queue[0]
			c.queue = c.queue[1:]
			return m, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l := <-c.lines:
			if err := c.accept(l); err != nil {
				c.finish(ctx, err)
				return nil, err
			}
		}
	}
}

// lastAnswers is how long calls may go on after the end of input. A client that closes
// the input wants the server to end, but not to lose what it has just asked.
const lastAnswers = time.Second

// finish waits for the last answers: the SDK cancels all calls when Read fails.
func (c *stdioConn) finish(ctx context.Context, err error) {
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

// accept queues the messages of a line, and answers a line that is not a message. Its error ends
// the connection.
func (c *stdioConn) accept(l line) error {
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
		return c.acceptBatch(b, text)
	}
	if refused := c.take(b.messages[0], text, nil); refused != nil {
		return c.refuse(refused)
	}
	return nil
}

// acceptBatch: 2025-03-26 has batches, no other revision (JSON-RPC 2.0 §6, RS-83).
func (c *stdioConn) acceptBatch(b body, text []byte) error {
	if c.inflight.negotiated() != protocol.Rev20250326 {
		return c.refuse(invalid(nil, "Batches are not part of this revision."))
	}
	if refused := b.checkBatch(); refused != nil {
		return c.refuse(refused)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return c.refuse(&refusal{http.StatusBadRequest, jsonrpc.CodeParseError, "The line is not JSON.", nil})
	}
	own := &batch{left: 1} // held until every message has been taken
	for i, m := range b.messages {
		if refused := c.take(m, raw[i], own); refused != nil {
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

// take queues one message.
func (c *stdioConn) take(m message, raw []byte, b *batch) *refusal {
	msg, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return invalid(m.ID, "The message is not valid JSON-RPC 2.0.")
	}
	if r, ok := msg.(*jsonrpc.Request); ok {
		if c.extra != nil {
			own := *c.extra
			r.Extra = &own
		}
		if r.Method == "notifications/cancelled" {
			c.inflight.cancel(m)
		}
		if r.IsCall() && !c.inflight.begin(r, m, b) {
			// Without the id: the answer to that is still to come.
			return invalid(nil, fmt.Sprintf("The id %s is in use.", m.ID))
		}
	}
	c.queue = append(c.queue, msg)
	return nil
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

func (c *stdioConn) refuse(refused *refusal) error {
	return c.send(errorMessage(refused.id, refused.code, refused.text))
}

// send writes one line (RS-81); JSON has no line break of its own.
func (c *stdioConn) send(text []byte) error {
	if text == nil {
		return nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}
