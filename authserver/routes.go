package authserver

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rs/cors"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/metadata"
)

// paths are the URL paths of the pages, including the path of the issuer.
type paths struct {
	host                                                   string // of the issuer, without its port
	prefix, home, authorize, login, consent, logout, setup string
	choose                                                 string // the account chooser
	paused                                                 string // a paused application that requests access
	// For sign-ins at providers; callback and connect end in a slash.
	callback, connect, depart, disconnect, claim, language string
	device                                                 string // typing the codes of other devices
	remote, remoteDecision                                 string // a sign-in from another device
	link, forgotten                                        string // link ends in a slash
	passkey, second, recovery, prove                       string // authentication methods
	notices                                                string
	account, connections, signIns, stop                    string
	// sealed returns the query that URLs carry for a pushed request.
	sealed func(form.Query) form.Query
}

func newPaths(issuer string) paths {
	prefix, host := "", ""
	if u, err := url.Parse(issuer); err == nil {
		prefix, host = strings.TrimSuffix(u.EscapedPath(), "/"), network.Hostname(u.Host)
	}
	return paths{
		host:   host,
		prefix: prefix, home: prefix + "/", authorize: prefix + "/authorize", login: prefix + "/login",
		consent: prefix + "/consent", logout: prefix + "/logout", setup: prefix + "/setup",
		choose: prefix + "/choose", paused: prefix + "/paused",
		callback: prefix + "/callback/", connect: prefix + "/connect/", depart: prefix + "/depart",
		disconnect: prefix + "/disconnect", claim: prefix + "/claim", device: prefix + "/device",
		link: prefix + users.LinkPath, forgotten: prefix + "/login/forgotten", language: prefix + "/language",
		remote: prefix + "/login/device", remoteDecision: prefix + "/device/sign-in",
		passkey: prefix + "/login/passkey", second: prefix + "/login/second", recovery: prefix + "/login/recovery",
		prove:   prefix + "/prove",
		notices: prefix + "/account/notices",
		account: prefix + "/account", connections: prefix + "/account/connections",
		signIns: prefix + "/account/sign-ins", stop: prefix + "/account/stop",
	}
}

// logged returns a path for the log, without the token of a one-time link.
func (p paths) logged(path string) string {
	if strings.HasPrefix(path, p.link) {
		return p.link + "..."
	}
	return form.Cut(path, 300)
}

// destination returns the address to continue at after a sign-in.
func (p paths) destination(to entry.Destination) string {
	switch {
	case to.Query != "":
		return p.request(to.Query.SignedIn())
	case to.Connect != "":
		return p.connect + to.Connect
	case to.Device != "":
		return p.forDevice(to.Device)
	case to.Page != "":
		return p.prefix + to.Page
	}
	return p.account
}

// signIn returns the address of another way to sign in, on the way to a destination.
func (p paths) signIn(to entry.Destination) string {
	switch {
	case to.Query != "":
		return p.request(to.Query)
	case to == (entry.Destination{}):
		return p.login
	}
	return p.destination(to)
}

// forDevice returns the address for a decision about the device with a code.
func (p paths) forDevice(code string) string {
	return p.device + "?" + url.Values{paramUserCode: {code}}.Encode()
}

// request returns the address where an authorization request continues. A pushed request is sealed:
// the client's version counts, and the browser must not change it.
func (p paths) request(q form.Query) string {
	if q.Pushed() != nil {
		q = p.sealed(q)
	}
	return p.authorize + "?" + string(q)
}

// atProvider returns the address where an authorization request continues at a provider.
func (p paths) atProvider(q form.Query, provider string) string {
	return p.request(q.AtProvider(provider))
}

// Register mounts every endpoint below the issuer's path on mux, and the discovery documents at all
// their well-known locations (AS-14). Every other well-known location that is not registered on mux
// gets a JSON 404. On the mux of an MCP server, clients of 2025-03-26 find them, because these know
// only the origin of that server (AS-15).
func (s *Server) Register(mux *http.ServeMux) { s.register(mux, !s.cfg.ConsoleApart) }

func (s *Server) register(mux *http.ServeMux, console bool) {
	p := s.paths.prefix
	handle := func(path string, h http.Handler, methods ...string) {
		mux.Handle(path, s.observe(s.errors.allow(h, methods...)))
	}
	api := func(path string, h http.HandlerFunc, methods ...string) {
		handle(p+path, browserClients(s.kept(h)), append(methods, http.MethodOptions)...)
	}
	api("/token", s.handleToken, http.MethodPost)
	api("/par", s.handlePush, http.MethodPost)
	api("/device_authorization", s.handleDeviceAuthorization, http.MethodPost)
	api("/revoke", s.handleRevoke, http.MethodPost)
	api("/jwks.json", s.handleJWKS, http.MethodGet, http.MethodHead)
	if s.cfg.Tokens.StatusTTL > 0 {
		api("/status/{list}", s.handleStatus, http.MethodGet, http.MethodHead)
	}
	handle(p+"/introspect", http.HandlerFunc(s.handleIntrospect), http.MethodPost)
	handle(p+"/clearance", s.kept(http.HandlerFunc(s.handleClearance)), http.MethodPost)
	handle(p+"/reports", s.kept(http.HandlerFunc(s.handleReport)), http.MethodPost)
	if s.cfg.Registration != nil {
		mux.Handle(p+"/register", s.observe(s.kept(s.cfg.Registration))) // AS-131
		mux.Handle(p+"/register/{client}", s.observe(s.kept(s.cfg.Registration)))
	}
	if s.cfg.SecurityEvents != nil {
		handle(p+"/events", s.kept(s.cfg.SecurityEvents), http.MethodPost)
	}
	s.pages.register(func(path string, h http.Handler, methods ...string) {
		handle(path, s.kept(h), methods...)
	}, console)
	metadata.Mount(mux, s.observe(s.discovery), metadata.AuthorizationServerPaths(s.cfg.Issuer)...)
	if origins := s.ways.Site().RelatedOrigins(); origins != nil {
		handle("/.well-known/webauthn", relatedOrigins(origins), http.MethodGet, http.MethodHead)
	}
	mux.Handle("/.well-known/", s.observe(metadata.NotFound()))
	handle(p+"/healthz", http.HandlerFunc(s.Healthz), http.MethodGet, http.MethodHead)
	handle(p+"/readyz", http.HandlerFunc(s.Readyz), http.MethodGet, http.MethodHead)
}

// allow answers any other method with 405 and Allow (RFC 9110 §15.5.6). The mux pattern cannot do
// this: with a catch-all pattern of an embedding program, the mux would send other methods there.
func (p *errorPages) allow(h http.Handler, methods ...string) http.Handler {
	list := strings.Join(methods, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, m := range methods {
			if r.Method == m {
				h.ServeHTTP(w, r)
				return
			}
		}
		w.Header().Set("Allow", list)
		p.wrongMethod(w, r)
	})
}

// byMethod serves a page and its form at the same address.
func byMethod(page, form http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			form(w, r)
			return
		}
		page(w, r)
	})
}

// browserClients lets MCP clients in a browser use an endpoint: from any origin, without cookies.
// The pages and /authorize never get it (OAuth 2.1 §3.1, AS-10). It uses rs/cors and not
// internal/cors, because its responses depend on the request: docs/decisions/libraries.md.
func browserClients(h http.Handler) http.Handler {
	return cors.New(cors.Options{
		AllowedOrigins: []string{"*"},
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: []string{"Authorization", "Content-Type", "MCP-Protocol-Version", "DPoP"},
		ExposedHeaders: []string{"WWW-Authenticate", "Retry-After", "DPoP-Nonce"}, // AS-236
		MaxAge:         600,
	}).Handler(h)
}
