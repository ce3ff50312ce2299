package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestFaults: what a client is told about each failure.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"credentials", fmt.Errorf("x: %w", errCredentials), 502, "does not accept the gateway"},
		{"redirect", fmt.Errorf("%w to y", errRedirect), 502, "is elsewhere"},
		{"a page of a proxy", statusError(503), 503, "has failed"},
		{"ended", fmt.Errorf("%w: revoked", errEnded), 503, "was ended"},
		{"a deadline", fmt.Errorf("x: %w", context.DeadlineExceeded), 504, "does not answer in time"},
		{"a deadline of the network", fmt.Errorf("x: %w", os.ErrDeadlineExceeded), 504, "does not answer in time"},
		{"anything else", io.ErrUnexpectedEOF, 502, "cannot be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if f := fault(c.err); f.Status != c.status || !strings.Contains(f.Message, c.want) ||
				f.Code != mcp.CodeInternal {
				t.Errorf("got %+v, want %d %s", f, c.status, c.want)
			}
		})
	}
}

// ending serves one request whose context ends with cause while the MCP server works on it.
func ending(t *testing.T, cause error) *httptest.ResponseRecorder {
	t.Helper()
	ctx, end := context.WithCancelCause(mcpresource.NewContext(t.Context(), alice))
	inner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		end(cause)
		<-r.Context().Done()
	}))
	defer inner.Close()
	u, err := New(Config{URL: inner.URL, Resource: publicURL})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	w := httptest.NewRecorder()
	u.ServeHTTP(w, httptest.NewRequest(http.MethodPost, publicURL, strings.NewReader(ping)).WithContext(ctx))
	return w
}

// TestEndedRequest: RS-98 RU-05. A request that was ended is answered, with the time after which to ask again:
// because its token was revoked, or for no known reason, which need not be that the client is gone.
func TestEndedRequest(t *testing.T) {
	want := `"id":"p1","error":{"code":-32603,"message":"The request was ended."}`
	for _, cause := range []error{errors.New("revoked"), context.Canceled} {
		w := ending(t, cause)
		if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%v: got %d %v %s", cause, w.Code, w.Header(), w.Body)
		}
	}
}

// TestUnreadableList: RU-12. A list that cannot be looked at is no server that cannot be reached.
func TestUnreadableList(t *testing.T) {
	g := front(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
	})
	list := `{"jsonrpc":"2.0","id":"p1","method":"tools/list"}`
	if _, got := post(t, g.URL, list, nil); !strings.Contains(got, "is compressed, or in another form") {
		t.Errorf("got %s", got)
	}
}

// TestFaultHeaders: a fault is no page of our origin, is kept by no cache, and says nothing
// about a time that it does not know.
func TestFaultHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	fault(errCredentials).Write(w)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'", "Retry-After": "",
	} {
		if v := w.Header().Get(name); v != want {
			t.Errorf("%s: got %q, want %q", name, v, want)
		}
	}
}

// TestFaultID: JSON-RPC 2.0 §5. The id of an error is that of the request, and null when there
// is none: a notification, an answer, or something else.
func TestFaultID(t *testing.T) {
	g := front(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })
	for body, want := range map[string]string{
		ping:                                   `"id":"p1"`,
		`{"jsonrpc":"2.0","method":"x"}`:       `"id":null`,
		`{"jsonrpc":"2.0","id":3,"result":{}}`: `"id":null`,
		`nonsense`:                             `"id":null`,
		``:                                     `"id":null`,
	} {
		if _, got := post(t, g.URL, body, nil); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}
