package mcpresource

import (
	"net/http"
	"testing"
)

// TestCharset: with a decoder for UTF-7, which the TypeScript SDK has by way of iconv, the
// body below calls delete_all.
func TestCharset(t *testing.T) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","x":"+ACI,+ACI-name+ACI-:+ACI-delete+AF8-all"}}`
	for _, tt := range []struct {
		header []string
		want   int
	}{
		{[]string{"Content-Type", "application/json; charset=utf-7"}, http.StatusUnsupportedMediaType},
		{[]string{"Content-Type", `application/json; charset="UTF-16LE"`}, http.StatusUnsupportedMediaType},
		{[]string{"Content-Type", "application/json; charset=utf-8; charset=utf-7"}, http.StatusUnsupportedMediaType},
		{[]string{"Content-Type", "application/json; charset*=us-ascii''utf-7"}, http.StatusUnsupportedMediaType},
		{[]string{"Content-Encoding", "br"}, http.StatusUnsupportedMediaType},
		{[]string{"Content-Encoding", "identity"}, http.StatusOK},
		{[]string{"Content-Type", "application/json; charset=UTF-8"}, http.StatusOK},
		{[]string{"Content-Type", "application/json"}, http.StatusOK},
	} {
		r := newRig(t, func(c *Config) { c.Policy = nil })
		if got := r.call("alice", body, tt.header...); got.Code != tt.want || tt.want != http.StatusOK && len(r.seen) > 0 {
			t.Errorf("%q: got %d, want %d; the server saw %d requests", tt.header, got.Code, tt.want, len(r.seen))
		}
	}
}
