package assembly

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStrippedPathsAreToldOnce checks that a proxy that strips the path of the issuer is logged
// once (usability 6).
func TestStrippedPathsAreToldOnce(t *testing.T) {
	for issuer, want := range map[string]int{"https://h.example/auth": 1, "https://h.example": 0} {
		var out strings.Builder
		h := noticeStripping(issuer, slog.New(slog.NewTextHandler(&out, nil)), http.NotFoundHandler())
		for _, path := range []string{"/auth/authorize", "/authorize", "/token", "/favicon.ico"} {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		}
		if got := strings.Count(out.String(), "requests come without the path of the issuer"); got != want {
			t.Errorf("%s: told %d times, want %d", issuer, got, want)
		}
	}
}
