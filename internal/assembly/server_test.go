package assembly

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Security L2, SP-22: a management listener on loopback answers to loopback names alone.
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
