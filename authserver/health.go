package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/wire"
)

// Healthz reports that the process is alive, without any checks.
func (s *Server) Healthz(w http.ResponseWriter, _ *http.Request) {
	wire.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// Readyz reports whether this server should get requests: the store is reachable, its schema
// matches, keys are loaded, and the server is not stopping. The log contains the reason of a
// failure.
func (s *Server) Readyz(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		wire.WriteJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "draining"})
		return
	}
	if err := s.Ready(r.Context()); err != nil {
		s.log.WarnContext(r.Context(), "not ready", "error", err)
		wire.WriteJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready"})
		return
	}
	wire.WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// Drain makes readiness fail from now on, so that a load balancer sends no new requests while the
// open ones finish. Serve then closes each connection after its next response.
func (s *Server) Drain() { s.draining.Store(true) }
