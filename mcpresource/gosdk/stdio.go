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
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk/internal/caller"
)

// StdioOptions configures RunStdio. The zero value and nil mean standard input and output.
type StdioOptions struct {
	Reader io.ReadCloser // default: standard input
	Writer io.Writer     // default: standard output
	// Caller returns the caller, see FromEnv. RunStdio calls it once and returns its error. The
	// result is verified again before each request. Without Caller there is no caller, and the
	// middleware of an Adapter rejects requests.
	Caller func(context.Context) (*mcpresource.Principal, error)
	// MaxLine is the maximum length of a line, in bytes. Default: the SDK's limit, 16 MiB.
	MaxLine int
}

// RunStdio serves standard input and output until the input ends. Use it instead of server.Run:
//
//	err := gosdk.RunStdio(ctx, server, nil)
//
// One process serves clients of both eras, even interleaved on one connection (RS-85). Requests
// that name their revision in _meta belong to a session of 2026-07-28, all others to the session
// that initialize opens. Unlike mcp.StdioTransport, it supports batches in 2025-03-26, answers
// malformed lines and continues, and tolerates an id that is in use. It sends nothing more for a
// cancelled request. With the default Writer it also redirects os.Stdout to standard error, so that
// a stray fmt.Println in a tool does not become a protocol message.
//
// It returns an error of Caller, of ctx, or of reading or writing, and nil at the end of the input.
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
			info := caller.TokenInfo(p, p.Person())
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

// FromEnv returns a Caller for a stdio server that uses the access token in an environment
// variable: stdio has no sign-in (MCP, Authorization, "Protocol Requirements"). The token is
// verified like tokens in requests. The variable is removed, so that tools and the programs they
// start do not inherit it. The system's copy of the initial environment, such as in /proc of Linux,
// remains readable for programs of the same user.
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

// line is the result of a read: a line or an error.
type line struct {
	text []byte
	err  error
}

var errLongLine = errors.New("gosdk: the line is too long")

// scan reads lines until the input ends or close is called. It may outlive close, because closing
// standard input may not interrupt a read.
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
		l.err = nil // the last line may lack a line break
	}
	select {
	case c.lines <- l:
		return true
	case <-c.closed:
		return false
	}
}

// readLine returns a line. It skips the rest of a line that is too long.
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
			return nil, errLongLine // an end of input is returned by the next read
		}
		return text, err
	}
}
