package mcpresource

import (
	"net/http"
	"testing"
)

// TestMethods: only the body of a POST is checked. So no other method may carry one to the server,
// whatever a framework behind the guard does with it.
func TestMethods(t *testing.T) {
	r := newRig(t, nil)
	for _, method := range []string{"PUT", "PATCH", "QUERY", "post", "get", "TRACE", "MKCOL"} {
		t.Run("RS-43 RS-66 "+method+" is 405 with Allow, and reaches nothing", func(t *testing.T) {
			before := len(r.seen)
			w := r.do(method, "/mcp", tool("danger"), "Authorization", "Bearer alice")
			if w.Code != 405 || w.Header().Get("Allow") != "GET, POST, DELETE" || len(r.seen) != before {
				t.Errorf("got %d %v, %d requests forwarded", w.Code, w.Header(), len(r.seen)-before)
			}
		})
		t.Run("RS-14 without a token it is 401 first: "+method, func(t *testing.T) {
			if w := r.do(method, "/mcp", tool("danger")); w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
		})
	}
	for _, method := range []string{"GET", "DELETE", "HEAD", "OPTIONS"} {
		t.Run("RS-43 a body by "+method+" stays behind", func(t *testing.T) {
			if w := r.do(method, "/mcp", tool("danger"), "Authorization", "Bearer alice"); w.Code != 200 {
				t.Fatalf("got %d", w.Code)
			}
			last := r.seen[len(r.seen)-1]
			if body := r.bodies[len(r.bodies)-1]; body != "" || last.ContentLength != 0 || last.Body != http.NoBody ||
				last.TransferEncoding != nil {
				t.Errorf("got %q, length %d, %v", body, last.ContentLength, last.TransferEncoding)
			}
		})
	}
	t.Run("RS-43 a header that names another method does not reach the server", func(t *testing.T) {
		for _, h := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
			for _, method := range []string{"GET", "POST", "DELETE"} {
				r.do(method, "/mcp", tool("read"), "Authorization", "Bearer alice", h, "POST")
				if got := r.seen[len(r.seen)-1].Header.Get(h); got != "" {
					t.Errorf("%s %s: got %q", method, h, got)
				}
			}
		}
	})
}
