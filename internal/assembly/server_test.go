package assembly

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestManagementHasAHost checks that a management listener on loopback serves only loopback names
// (security review L2, SP-22).
func TestManagementHasAHost(t *testing.T) {
	h := localHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"127.0.0.1:9414": 200, "localhost:9414": 200, "[::1]:9414": 200, "evil.example": 403,
		"127.0.0.1:9414.evil.example": 403, "": 403,
	} {
		r, w := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
		r.Host = host
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: got %d, want %d", host, w.Code, want)
		}
	}
}
