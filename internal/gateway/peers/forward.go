package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Site is an MCP server whose sessions are spread over replicas.
type Site struct {
	peers    *Peers
	resource string
	maxBody  int64
	handler  http.Handler // serves sessions of this replica
}

// Site returns the site of the MCP server at the URL resource. handler serves forwarded requests
// with bodies of up to maxBody bytes. Passed is true for their context, and mcpresource.FromContext
// returns the caller.
func (p *Peers) Site(resource string, maxBody int64, handler http.Handler) *Site {
	s := &Site{p, resource, maxBody, handler}
	p.sites[resource] = s
	return s
}

// separator separates the secret part of a session id from the holder. Replica IDs do not contain
// it.
const separator = "."

// Session returns the id of a session of this replica: the secret and the replica's ID.
func (s *Site) Session(secret string) string { return secret + separator + s.peers.c.Self }

// Elsewhere returns the ID of the other replica that holds a session. It returns "" if this replica
// holds the session, or if the session id names no replica.
func (s *Site) Elsewhere(session string) (holder string) {
	_, holder, _ = strings.Cut(session, separator)
	if holder == s.peers.c.Self || !isID(holder) {
		return ""
	}
	return holder
}

// isID reports whether text from a client has the form of a replica ID.
func isID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Request is a request to forward.
type Request struct {
	Holder string // replica ID
	Body   []byte // of a POST
	Calls  []json.RawMessage
}

// Forward lets another replica answer a request that the guard has accepted.
func (s *Site) Forward(w http.ResponseWriter, r *http.Request, to Request) {
	resp, err := s.ask(r, to)
	if err != nil {
		s.fail(w, r, to, err)
		return
	}
	defer resp.Body.Close()
	copyHeaders(w.Header(), resp.Header, returned)
	w.WriteHeader(resp.StatusCode)
	if err := copyStream(w, resp.Body); err != nil && r.Context().Err() == nil {
		s.broken(w, r, to, resp, err)
	}
}

// ask sends the request to the holder. It returns when the response begins.
func (s *Site) ask(r *http.Request, to Request) (*http.Response, error) {
	out, err := s.peers.request(r.Context(), r.Method, to.Holder, pathSession)
	if err != nil {
		return nil, err
	}
	copyHeaders(out.Header, r.Header, passed)
	out.Header.Set(headerResource, s.resource)
	if p, ok := mcpresource.FromContext(r.Context()); ok {
		if err := writeCaller(out.Header, p); err != nil {
			return nil, err
		}
	}
	if r.Method == http.MethodPost {
		out.ContentLength = int64(len(to.Body))
		out.Body = io.NopCloser(bytes.NewReader(to.Body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(to.Body)), nil }
	}
	return s.peers.transport.RoundTrip(out)
}

// errWrite means that the client has disconnected.
var errWrite = errors.New("the client is gone")

// unfinished means that a response ended in the middle of an event.
type unfinished struct{ error }

// copyStream copies a stream and flushes each part.
func copyStream(w http.ResponseWriter, from io.Reader) error {
	control := http.NewResponseController(w)
	b := make([]byte, 16<<10)
	var last [2]byte
	whole := true
	for {
		n, err := from.Read(b)
		if n > 0 {
			if _, err := w.Write(b[:n]); err != nil {
				return errWrite
			}
			if control.Flush() != nil {
				return errWrite
			}
			last = lastTwo(last, b[:n])
			whole = last == [2]byte{'\n', '\n'}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil && !whole:
			return unfinished{err}
		case err != nil:
			return err
		}
	}
}

func lastTwo(last [2]byte, b []byte) [2]byte {
	if len(b) == 1 {
		return [2]byte{last[1], b[0]}
	}
	return [2]byte(b[len(b)-2:])
}

// broken ends a response whose holder has ended during it. A call gets an error if possible. Any
// other stream just ends: the client asks again and learns that the session has ended.
func (s *Site) broken(w http.ResponseWriter, r *http.Request, to Request, resp *http.Response, err error) {
	if errors.Is(err, errWrite) {
		return
	}
	s.peers.c.Logger.WarnContext(r.Context(), "the replica that holds a session has ended, or was lost, in the middle "+
		"of an answer", "resource", s.resource, "replica", s.peers.called(to.Holder), "error", err)
	var half unfinished
	events := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	if errors.As(err, &half) || !events || len(to.Calls) != 1 {
		return
	}
	f := gateway.Fault{ID: to.Calls[0], Code: mcp.CodeInternal, Message: "The server that held this session has " +
		"ended in the middle of this call, which may have taken effect. " + begin}
	_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", f.Encode()) // the client may have left
}

// begin tells the client how to continue after its session has ended.
const begin = "Open a new session (initialize)."

// fault is the reason why a replica does not answer.
type fault struct {
	gone bool   // the replica has ended, and its sessions with it
	why  string // for the operator
}

// explain finds out why a replica did not answer.
func (p *Peers) explain(ctx context.Context, id string, err error) fault {
	var dial dialError
	if r, ok, err := p.directory.again(ctx, id); err == nil && (!ok || p.directory.gone(r)) {
		return fault{true, "it has ended"}
	}
	switch dialed := errors.As(err, &dial); {
	case errors.Is(err, errUnlisted), errors.Is(err, errReplaced), dialed && errors.Is(err, syscall.ECONNREFUSED):
		return fault{true, err.Error()}
	case errors.Is(err, errKey), isAlert(err):
		return fault{false, errKey.Error() + ": set the same secret_key on each replica"}
	}
	return fault{false, err.Error()}
}

// isAlert reports whether the other side has refused the handshake. With TLS 1.3 the client learns
// this after its own handshake has succeeded.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// fail writes the error if the holder did not answer. The guard answers for a request that was
// ended.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, to Request, err error) {
	if ended := context.Cause(r.Context()); ended != nil {
		s.peers.c.Logger.DebugContext(r.Context(), "request ended", "error", ended)
		return
	}
	why := s.peers.explain(r.Context(), to.Holder, err)
	f := gateway.Fault{Code: mcp.CodeInternal}
	if len(to.Calls) == 1 {
		f.ID = to.Calls[0]
	}
	var dial dialError
	asked := !errors.As(err, &dial) && !isAlert(err)
	switch {
	case why.gone && (!asked || r.Method != http.MethodPost):
		f.Status, f.Code, f.Message = http.StatusNotFound, mcp.CodeRefused,
			"Session not found: the server that held it has ended. "+begin
		s.peers.c.Logger.InfoContext(r.Context(), "a session has ended with the replica that held it",
			"resource", s.resource, "replica", s.peers.called(to.Holder), "reason", why.why)
		f.Write(w)
		return
	case !asked:
		f.Status, f.Retry, f.Message = http.StatusServiceUnavailable, 5, "Another server of this installation holds "+
			"this session, and this one cannot reach it. Its operator finds the reason with: mcp-authd doctor"
	default: // the holder got the request, and the program may have executed it
		f.Status, f.Message = http.StatusBadGateway, "The server that holds this session did not answer. The request "+
			"may have taken effect."
	}
	s.peers.c.Logger.WarnContext(r.Context(), "a request cannot be passed to the replica that holds its session",
		"resource", s.resource, "replica", s.peers.called(to.Holder), "error", err, "reason", why.why)
	f.Write(w)
}

// called returns a replica's ID and address for the log.
func (p *Peers) called(id string) string {
	p.directory.mu.Lock()
	defer p.directory.mu.Unlock()
	if r, ok := p.directory.known[id]; ok {
		return r.Name + " (" + r.Address + ")"
	}
	return id
}
