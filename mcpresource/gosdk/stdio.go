package gosdk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// StdioOptions adjust RunStdio. The zero value, and nil, are standard input and output.
type StdioOptions struct {
	Reader io.ReadCloser // default: standard input
	Writer io.Writer     // default: standard output
	// Caller says who is at the other end; see FromEnv. It is asked once, and
	// RunStdio fails when it does. What it returns is judged again before each request.
	// Without it there is no caller, which the middleware of an Adapter refuses.
	Caller func(context.Context) (*mcpresource.Principal, error)
	// MaxLine bounds a line, in bytes. Default: that of the SDK, 16 MiB.
	MaxLine int
}

// RunStdio serves standard input and output until the input ends, in place of server.Run:
//
//	err := gosdk.RunStdio(ctx, server, nil)
//
// One process answers clients of both eras, also when they take turns on one connection (RS-85):
// requests that name their revision in _meta belong to a session of 2026-07-28, and all others to
// the one that initialize opens. Unlike mcp.StdioTransport it answers batches where the revision has
// them (2025-03-26), answers malformed lines and goes on, is not ended by an id that is in use, and
// sends nothing more for a cancelled request. With the default Writer it also turns os.Stdout to
// standard error, so that a stray fmt.Println of a tool is no protocol message.
//
// The error is that of Caller, of ctx, or of reading or writing; the end of the input is none.
func RunStdio(ctx context.Context, s *mcp.Server, o *StdioOptions) error {
	var own StdioOptions
	if o != nil {
		own = *o
	}
	c, err := newStdio(ctx, s, own)
	if err != nil {
		return err
	}
	go c.scan()
	return c.serve(ctx)
}

func newStdio(ctx context.Context, s *mcp.Server, o StdioOptions) (*stdio, error) {
	if o.MaxLine <= 0 {
		o.MaxLine = mcp.DefaultMaxLineLength
	}
	c := &stdio{
		server: s, in: o.Reader, out: o.Writer, most: o.MaxLine, lines: make(chan line),
		closed: make(chan struct{}), inflight: newInflight(),
	}
	if o.Caller != nil {
		p, err := o.Caller(ctx)
		if err != nil {
			return nil, err
		}
		if p != nil {
			info := tokenInfo(p, p.Person())
			info.Extra[heldKey] = true
			c.extra = &mcp.RequestExtra{TokenInfo: info}
		}
	}
	if c.in == nil {
		c.in = os.Stdin
	}
	if c.out == nil {
		c.out, os.Stdout = os.Stdout, os.Stderr // RS-82
	}
	return c, nil
}

// FromEnv returns the caller of a stdio server by the access token in an environment
// variable: stdio has no sign-in of its own (MCP, Authorization, "Protocol
// Requirements"). The token is judged as the guard judges those of requests. The variable
// is removed, so that neither tools nor the programs they start inherit it. What the
// system keeps of the environment that a process began with, as in /proc of Linux,
// stays: programs of the same user that look for it there find it.
func FromEnv(g *mcpresource.Guard, name string) func(context.Context) (*mcpresource.Principal, error) {
	return func(ctx context.Context) (*mcpresource.Principal, error) {
		token := os.Getenv(name)
		if token == "" {
			return nil, fmt.Errorf("gosdk: no access token: set the environment variable %s", name)
		}
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("gosdk: removing %s from the environment: %w", name, err)
		}
		p, err := g.Verify(ctx, mcpresource.Credential{Scheme: "Bearer", Token: token})
		if err != nil {
			return nil, fmt.Errorf("gosdk: the access token in %s: %w", name, err)
		}
		return p, nil
	}
}

// line is the result of a read: text, or the error.
type line struct {
	text []byte
	err  error
}

var errLongLine = errors.New("gosdk: the line is too long")

// scan reads lines until there are none, or close. It stays behind when the reader does
// not end at close, as standard input may not.
func (c *stdio) scan() {
	r := bufio.NewReader(c.in)
	for {
		text, err := c.readLine(r)
		if err == nil || errors.Is(err, errLongLine) || len(text) > 0 {
			if !c.pass(line{text, err}) {
				return
			}
		}
		if err != nil && !errors.Is(err, errLongLine) {
			c.pass(line{err: err})
			return
		}
	}
}

func (c *stdio) pass(l line) bool {
	if l.text != nil && !errors.Is(l.err, errLongLine) {
		l.err = nil // the last line may lack its end
	}
	select {
	case c.lines <- l:
		return true
	case <-c.closed:
		return false
	}
}

// readLine reads over the rest of a line that is too long.
func (c *stdio) readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > c.most; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return nil, errLongLine // the end of input, if it is that, comes again
		}
		return text, err
	}
}
