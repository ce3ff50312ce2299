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
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestFaults checks the error that the client gets for each failure.
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

// guarded returns a guard in front of h that accepts a token of alice.
func guarded(t *testing.T, limits mcpresource.Limits, h http.Handler) http.Handler {
	t.Helper()
	g, err := mcpresource.New(mcpresource.Config{
		Resource: publicURL, AuthorizationServers: []string{alice.Issuer}, Limits: limits,
		Validator: mcpresource.ValidatorFunc(
			func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
				p := *alice
				p.Audience, p.ExpiresAt = []string{publicURL}, time.Now().Add(time.Hour)
				return &p, nil
			}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return g.Protect(h)
}

// TestEndedRequest: RS-98 RU-05 RU-06. If a request is ended while the MCP server works on it, the
// guard answers with a status for the reason, and the gateway writes nothing.
func TestEndedRequest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits mcpresource.Limits
		cause  error // nil: the guard ends it
		status int
		want   string
	}{
		{"its time is over", mcpresource.Limits{Timeout: time.Millisecond}, nil, 504, "The operation took too long."},
		{"its token is revoked", mcpresource.Limits{}, mcpresource.ErrInvalidToken, 401,
			"The access token is not valid."},
		{"it was ended for another reason", mcpresource.Limits{}, errors.New("x"), 503, "The request was ended."},
		{"its client may be gone", mcpresource.Limits{}, context.Canceled, 503, "The request was ended."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			inner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if tt.cause != nil {
					end(tt.cause)
				}
				<-r.Context().Done()
			}))
			defer inner.Close()
			u, err := New(Config{URL: inner.URL, Resource: publicURL})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			r := httptest.NewRequest(http.MethodPost, publicURL, strings.NewReader(ping)).WithContext(ctx)
			r.Header.Set("Authorization", "Bearer t")
			w := httptest.NewRecorder()
			guarded(t, tt.limits, u).ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) ||
				!strings.Contains(w.Body.String(), `"id":"p1"`) {
				t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
			}
			if after := w.Header().Get("Retry-After"); (after != "") != (tt.status == 503) {
				t.Errorf("Retry-After is %q", after)
			}
		})
	}
}

// TestUnreadableList: RU-12. A list that cannot be checked is reported differently from a server
// that cannot be reached.
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

// TestFaultHeaders checks that a fault cannot become a page of our origin, is not cached, and has
// no Retry-After if the time is unknown.
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

// TestFaultID: JSON-RPC 2.0 §5. An error has the id of its request, and null if the body is a
// notification, a response or anything else.
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
