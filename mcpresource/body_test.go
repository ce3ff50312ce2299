package mcpresource

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pipetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestSlowBody sends raw requests to a server that sets no timeouts.
func TestSlowBody(t *testing.T) {
	run := func(name string, f func(*testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	serve := func(t *testing.T, h http.Handler, readTimeout time.Duration) net.Conn {
		g, err := New(Config{
			Resource: "http://127.0.0.1/mcp", AuthorizationServers: []string{authServer},
			Validator: newRig(t, nil).c.Validator,
			Now:       func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
		})
		if err != nil {
			t.Fatal(err)
		}
		g.own.audiences = append(g.own.audiences, resource)
		c, err := pipetest.NewServer(t, &http.Server{
			Handler:     g.Protect(h),
			ReadTimeout: readTimeout, // only for bodies
			// Longer than any test.
			ReadHeaderTimeout: time.Hour,
			IdleTimeout:       time.Hour,
		}).Dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	// send writes head and body in one write.
	send := func(c net.Conn, method, token, body string, length int) {
		fmt.Fprintf(c,
			"%s /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", method,
			token, length, body)
	}
	none := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, tt := range []struct {
		name, method, token string
		readTimeout         time.Duration
		want                int
		after               time.Duration
	}{
		{"RS-196 a body that does not come is given up", "POST", "alice", 0, 408, bodyTime},
		{"RS-196 a shorter timeout of the server stays", "POST", "alice", time.Second, 408, time.Second},
		{"RS-196 nor does the guard wait for a body that it does not read", "POST", "nonsense", 0, 401, bodyTime},
		{"RS-196 nor that of a GET", "GET", "alice", 0, 200, bodyTime},
	} {
		run(tt.name, func(t *testing.T) {
			c := serve(t, none, tt.readTimeout)
			began := time.Now()
			send(c, tt.method, tt.token, "", 100)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != tt.want || time.Since(began) > tt.after {
				t.Errorf("got %v, %v after %v", resp, err, time.Since(began))
			}
		})
	}
	for timeout, name := range map[time.Duration]string{0: "none", bodyTime: "as short as ours"} {
		run("RS-98 a stream outlives the deadline; read timeout of the server: "+name, func(t *testing.T) {
			c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				wait.Advance(2 * bodyTime)
				if r.Context().Err() != nil {
					t.Error("the request was cancelled")
				}
				io.WriteString(w, "late")
			}), timeout)
			body := tool("read")
			for range 2 { // and the connection stays usable
				send(c, "POST", "alice", body, len(body))
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if b, _ := io.ReadAll(resp.Body); string(b) != "late" {
					t.Errorf("got %d %q", resp.StatusCode, b)
				}
			}
		})
	}
	run("RS-164 a client that leaves is noticed as before", func(t *testing.T) {
		gone := make(chan struct{})
		c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(gone)
		}), 0)
		body := tool("read")
		send(c, "POST", "alice", body, len(body))
		wait.Advance(2 * bodyTime)
		select {
		case <-gone:
			t.Error("it was noticed before it left")
		default:
		}
		c.Close()
		<-gone
	})
	t.Run("RS-98 the deadline is lifted before the handler runs", func(t *testing.T) {
		r := newRig(t, nil)
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r.next = func(http.ResponseWriter, *http.Request) {
			if len(w.set) != 2 || w.set[0].IsZero() || !w.set[1].IsZero() {
				t.Errorf("got %v", w.set)
			}
		}
		req := httptest.NewRequest(http.MethodPost, resource, strings.NewReader(tool("read")))
		req.Header.Set("Authorization", "Bearer alice")
		r.h.ServeHTTP(w, req)
		if len(r.seen) != 1 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("RS-196 a writer without deadlines serves", func(t *testing.T) {
		r := newRig(t, nil)
		if w := r.call("alice", tool("read")); w.Code != 200 || !strings.Contains(r.bodies[0], "read") {
			t.Errorf("got %d", w.Code)
		}
	})
}

// deadlines is a writer that records the deadlines set on it.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// TestCharset checks that other charsets and encodings are refused (RS-103). The body names one
// tool in UTF-8 and another in UTF-7, which some servers decode if the header names it.
func TestCharset(t *testing.T) {
	const two = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","x":"+ACIALAAiAG4AYQBtAGUAIgA6ACI-write_x"}}`
	for _, tt := range []struct {
		header, value string
		status        int
	}{
		{"Content-Type", "application/json", 200},
		{"Content-Type", "application/json; charset=utf-8", 200},
		{"Content-Type", `application/json;CHARSET="UTF-8"`, 200},
		{"Content-Type", "application/json; odata=x", 200},
		{"Content-Type", "application/json; charset=utf-7", 415},
		{"Content-Type", "application/json; charset=utf-16le", 415},
		{"Content-Type", "application/json; charset=iso-8859-1", 415},
		{"Content-Type", "application/json; charset = utf-7", 415},
		{"Content-Type", `application/json; charset="utf-7"`, 415},
		{"Content-Type", "application/json; charset=utf-8; charset=utf-7", 415},
		{"Content-Type", "application/json; charset=utf-7; charset*0=utf-8", 415},
		{"Content-Type", "application/json; charset*=utf-8''utf-7", 415},
		{"Content-Type", `application/json; x=";charset=utf-8"; charset=utf-7`, 415},
		{"Content-Encoding", "identity", 200},
		{"Content-Encoding", "br", 415},
		{"Content-Encoding", "identity, gzip", 415},
	} {
		t.Run("RS-103 "+tt.header+": "+tt.value, func(t *testing.T) {
			r := newRig(t, nil)
			w := r.call("alice", two, tt.header, tt.value)
			if w.Code != tt.status || (len(r.seen) == 0) != (tt.status == 415) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestInvalidRequests(t *testing.T) {
	r := newRig(t, nil)
	t.Run("RS-119 an empty array is -32600", func(t *testing.T) {
		if w := r.call("alice", ` [ ] `); w.Code != 400 ||
			!strings.Contains(w.Body.String(), `"id":null,"error":{"code":-32600`) {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
	t.Run("RS-155 the refusal of a repeated header names the request", func(t *testing.T) {
		if w := r.call("alice", tool("read"), "Mcp-Name", "read", "Mcp-Name", "write_x"); w.Code != 400 ||
			!strings.Contains(w.Body.String(), `"id":7,"error":{"code":-32020`) {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
	t.Run("RS-155 a GET has none", func(t *testing.T) {
		if w := r.do("GET", "/mcp", "", "Authorization", "Bearer alice", "Last-Event-Id", "1", "Last-Event-Id",
			"2"); w.Code != 400 || !strings.Contains(w.Body.String(), `"id":null`) {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}
