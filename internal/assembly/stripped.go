package assembly

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
)

// ours lists paths that a client requests if it knows the issuer.
var ours = []string{"/authorize", "/token", "/register", "/jwks.json", "/login", "/consent", "/setup"}

// noticeStripping logs once if requests arrive without the path of the issuer. A proxy has removed
// it, and users see only missing pages.
func noticeStripping(issuer string, log *slog.Logger, next http.Handler) http.Handler {
	u, err := url.Parse(issuer)
	if err != nil || u.Path == "" {
		return next
	}
	var once sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(ours, r.URL.Path) {
			once.Do(func() {
				log.Warn("requests come without the path of the issuer: does a proxy take it off? It has to send everything below that path on unchanged",
					slog.String("issuer", issuer), slog.String("path", r.URL.Path))
			})
		}
		next.ServeHTTP(w, r)
	})
}
