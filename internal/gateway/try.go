package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
)

// ErrAway means that an MCP server is unreachable, which may be temporary.
var ErrAway = errors.New("it does not answer")

const (
	tryTime   = 10 * time.Second
	tryAnswer = 1 << 20 // bytes read of a response
	hello     = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + mcp.Rev20251125 +
		`","capabilities":{},` +
		`"clientInfo":{"name":"mcp-authd gateway","version":"1"}}}`
)

// Try implements Server. It begins a session and ends it.
func (u *Upstream) Try(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	resp, err := u.ask(ctx, http.MethodPost, "", hello)
	where := u.target.Scheme + "://" + u.target.Host + u.target.Path
	if err != nil {
		return "", fmt.Errorf("%w at %s: %s", ErrAway, where, cause(err))
	}
	defer resp.Body.Close()
	if id := resp.Header.Get(mcp.HeaderSession); id != "" {
		defer u.leave(ctx, id)
	}
	switch status := resp.StatusCode; {
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		if u.isOlder(ctx) {
			return "", fmt.Errorf("the MCP server at %s speaks HTTP+SSE of MCP 2024-11-05, which the gateway does not: "+
				"set the upstream URL to its Streamable HTTP endpoint, which is /mcp for most, or update the server", where)
		}
		return "", fmt.Errorf("no MCP server answers at %s (%s): is the path missing? It is /mcp for most", where,
			resp.Status)
	case status == http.StatusUnauthorized, status == http.StatusForbidden: // it may require a caller
		u.c.Logger.WarnContext(ctx, "the MCP server refuses callers: if it wants a credential of its own, set it in "+
			"upstream.headers (--header of protect)", "resource", u.c.Resource, "upstream", where, "status", status)
		return "", nil
	case status >= 300 && status < 400:
		return "", fmt.Errorf("%w at %s: it redirects to %s; set the upstream URL to that", ErrAway, where,
			resp.Header.Get("Location"))
	case status >= 500:
		return "", fmt.Errorf("%w at %s but with %s", ErrAway, where, resp.Status)
	}
	name, ok := introduced(resp.Body, isType(resp.Header, "text/event-stream"))
	if !ok {
		return "", fmt.Errorf("%w at %s as an MCP server does (%s, %s)", ErrAway, where, resp.Status,
			resp.Header.Get("Content-Type"))
	}
	return name, nil
}

// isOlder reports whether a GET opens a stream of revision 2024-11-05, whose first event names the
// URL for POST.
func (u *Upstream) isOlder(ctx context.Context) bool {
	resp, err := u.ask(ctx, http.MethodGet, "", "")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !isType(resp.Header, eventStream) {
		return false
	}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, tryAnswer))
	for lines.Scan() {
		if kind, ok := strings.CutPrefix(lines.Text(), "event:"); ok {
			return strings.TrimSpace(kind) == "endpoint"
		}
	}
	return false
}

func (u *Upstream) ask(ctx context.Context, method, session, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.target.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set(mcp.HeaderSession, session)
	}
	for name, values := range u.c.Headers {
		req.Header[name] = values
	}
	return u.proxy.Transport.RoundTrip(req)
}

// leave ends the session that Try began.
func (u *Upstream) leave(ctx context.Context, session string) {
	if resp, err := u.ask(ctx, http.MethodDelete, session, ""); err == nil {
		resp.Body.Close()
	}
}

// introduced reads the server name from the response to initialize. It reports whether the response
// is JSON-RPC; a JSON-RPC error also counts.
func introduced(body io.Reader, stream bool) (name string, ok bool) {
	body = io.LimitReader(body, tryAnswer)
	var answer struct {
		Version string `json:"jsonrpc"`
		Result  struct {
			Info struct {
				Name string `json:"name"`
			} `json:"serverInfo"`
		} `json:"result"`
	}
	if stream {
		body = firstMessage(body)
	}
	if json.NewDecoder(body).Decode(&answer) != nil || answer.Version != "2.0" {
		return "", false
	}
	return answer.Result.Info.Name, true
}

// firstMessage returns the data of the first event with data. It does not wait for the end of the
// stream, which may stay open.
func firstMessage(stream io.Reader) io.Reader {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if data, ok := strings.CutPrefix(line, "data:"); ok && strings.TrimSpace(data) != "" {
			return strings.NewReader(data)
		}
		if err != nil {
			return strings.NewReader("")
		}
	}
}

// cause returns the innermost network error. It omits the URL, which may contain secrets.
func cause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}
