package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
)

// Answered describes an answered request for Config.Answered. The caller cannot influence its
// texts.
type Answered struct {
	// Endpoint is one of authorize, token, introspect, revoke, register, par, device_authorization,
	// jwks, status_list, metadata, events, health and pages.
	Endpoint string
	Status   int
	Took     time.Duration
	// Begins reports that it is the original authorization request of a client, and not one that a
	// page redirected to.
	Begins bool
}

// answered reports an answered request to Config.Answered.
func (s *Server) answered(r *http.Request, status int, took time.Duration) {
	if s.cfg.Answered == nil {
		return
	}
	a := Answered{Endpoint: s.paths.endpoint(r.Pattern), Status: status, Took: took}
	a.Begins = a.Endpoint == "authorize" && r.Method == http.MethodGet && ofClient(r.URL.RawQuery)
	s.cfg.Answered(a)
}

// ofClient reports whether an authorization request has none of the parameters that the pages add.
func ofClient(query string) bool {
	v, _ := url.ParseQuery(query)
	return !v.Has(form.ParamAccount) && !v.Has(form.ParamProvider) && !v.Has(form.ParamResume) &&
		!v.Has(form.ParamClearance)
}

// endpoint returns the endpoint of a request from the mux pattern.
func (p paths) endpoint(pattern string) string {
	pattern = strings.TrimPrefix(pattern, p.prefix)
	switch name, _, _ := strings.Cut(strings.TrimPrefix(pattern, "/"), "/"); name {
	case "authorize", "token", "introspect", "revoke", "register", "par", "device_authorization", "events",
		"reports":
		return name
	case "jwks.json":
		return "jwks"
	case "status":
		return "status_list"
	case ".well-known":
		return "metadata"
	case "healthz", "readyz":
		return "health"
	}
	return "pages"
}
