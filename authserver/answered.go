package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
)

// Answered is a request that was answered, as Config.Answered is told of it: nothing in it is of the
// caller's choice.
type Answered struct {
	// Endpoint is one of authorize, token, introspect, revoke, register, par, device_authorization, jwks,
	// status_list, metadata, events, health and pages.
	Endpoint string
	Status   int
	Took     time.Duration
	// Begins says that it is an authorization request as its client made it, and not one to which the
	// pages led back.
	Begins bool
}

// answered tells of a request that was answered.
func (s *Server) answered(r *http.Request, status int, took time.Duration) {
	if s.cfg.Answered == nil {
		return
	}
	a := Answered{Endpoint: s.paths.endpoint(r.Pattern), Status: status, Took: took}
	a.Begins = a.Endpoint == "authorize" && r.Method == http.MethodGet && ofClient(r.URL.RawQuery)
	s.cfg.Answered(a)
}

// ofClient reports whether an authorization request has none of the parameters that our pages add.
func ofClient(query string) bool {
	v, _ := url.ParseQuery(query)
	return !v.Has(form.ParamAccount) && !v.Has(form.ParamProvider) && !v.Has(form.ParamResume) &&
		!v.Has(form.ParamClearance)
}

// endpoint is what a request was routed to, by the pattern of the mux.
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
