package authserver

import "net/http"

// handleRevoke serves POST /revoke (RFC 7009, AS-226).
func (s *Server) handleRevoke(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	client, err := s.grants.clientAuth.Authenticate(r.Context(), credentials(r, p))
	if err == nil {
		err = s.grants.tokens.Revoke(r.Context(), client, p.Get("token"))
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}
