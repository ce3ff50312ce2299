package dcr

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/cors"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// maxBody bounds a registration request, in bytes.
const maxBody = 64 << 10

// origin identifies the sender of a registration for the rate limit and the audit log.
type origin struct {
	networks  []string // smallest first
	shared    bool     // a hosted service with many users
	userAgent string
}

func (r *Registry) origin(req *http.Request) origin {
	addr := r.cfg.ClientAddr
	if addr == nil {
		addr = peer
	}
	networks, shared := r.limiter.networks(addr(req))
	return origin{networks: networks, shared: shared, userAgent: truncate(req.UserAgent(), maxTextLength)}
}

// ServeHTTP implements the client registration endpoint (RFC 7591 §3) and, one path segment below
// it, the client configuration endpoint (RFC 7592 §2). Mount it at both. It uses no cookies, so
// browser clients may call it from any origin.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	cors.AllowAnyOrigin(h, "Retry-After, WWW-Authenticate")
	id, methods := managed(req), map[string]http.HandlerFunc{http.MethodPost: r.post}
	if id != "" {
		methods = map[string]http.HandlerFunc{
			http.MethodGet: r.manage(id), http.MethodPut: r.manage(id), http.MethodDelete: r.manage(id),
		}
	}
	allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ") + ", OPTIONS"
	handler := methods[req.Method]
	switch {
	case handler != nil:
		handler(w, req)
	case req.Method == http.MethodOptions:
		cors.Preflight(w, allowed)
	default:
		h.Set("Allow", allowed)
		writeError(w,
			refusal{http.StatusMethodNotAllowed,
				oauth.NewError(oauth.InvalidRequest, "This endpoint takes "+allowed+".")})
	}
}

func (r *Registry) post(w http.ResponseWriter, req *http.Request) {
	from := r.origin(req)
	out, err := r.answer(req, from)
	if err != nil {
		r.refused(req.Context(), from, err)
		writeError(w, err)
		return
	}
	wire.WriteJSON(w, http.StatusCreated, out)
}

var errDisabled = oauth.NewError(oauth.AccessDenied,
	"Registration is turned off. Ask the operator of this server for a client id.")

// answer processes a registration request and returns the response.
func (r *Registry) answer(req *http.Request, from origin) (response, error) {
	if r.cfg.Disabled {
		return response{}, errDisabled
	}
	reg, err := r.prepare(req)
	if err != nil {
		return response{}, r.limiter.takeFor(req.Context(), from, err)
	}
	if err := r.limiter.take(req.Context(), from, reg.units); err != nil {
		return response{}, err
	}
	if err := r.store(req.Context(), &reg); err != nil {
		return response{}, err
	}
	r.registered(req.Context(), from, reg)
	return r.response(req.Context(), reg.client, reg.secret)
}

// refusal is a protocol error with another HTTP status than its code implies.
type refusal struct {
	status int
	err    *oauth.Error
}

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

func readBody(req *http.Request) ([]byte, error) {
	if t, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, refusal{http.StatusUnsupportedMediaType, badMetadata("The Content-Type must be application/json.")}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, req.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refusal{http.StatusRequestEntityTooLarge, badMetadata("The request body is too large.")}
	case err != nil:
		return nil, badMetadata("The request body could not be read.").Because(err)
	}
	return body, nil
}

// registered records a registration in the audit log, with the client's name and its redirect
// targets.
func (r *Registry) registered(ctx context.Context, from origin, reg registration) {
	c := reg.client
	request.Of(ctx).Registered(c.ID, c.Name)
	r.cfg.Audit.Record(ctx, audit.ClientRegistered,
		slog.String("client_id", c.ID), slog.String("client_name", c.Name),
		slog.String("redirects", strings.Join(redirectTargets(c.RedirectURIs), " ")),
		slog.String("auth_method", c.AuthMethod), slog.Bool("stored", reg.units > 0),
		slog.Bool("replaced", reg.replaced),
		slog.String("network", from.networks[0]), slog.String("user_agent", from.userAgent))
}

// refused records a refused registration. The server's line of the request has the cause of a server
// error; a handler that is used alone logs it here.
func (r *Registry) refused(ctx context.Context, from origin, err error) {
	e := oauth.AsError(err)
	record := request.Of(ctx)
	if record.Refuse(e); record == nil && e.Status() >= http.StatusInternalServerError {
		r.cfg.Logger.ErrorContext(ctx, "client registration failed", "error", err)
	}
	r.cfg.Audit.Record(ctx, audit.ClientRefused,
		slog.String("error", string(e.Code)), slog.String("reason", e.Description),
		slog.String("network", from.networks[0]), slog.String("user_agent", from.userAgent))
}

// redirectTargets shortens redirect URIs to scheme and host, because paths may contain IDs.
func redirectTargets(uris []string) []string {
	var out []string
	for _, raw := range uris {
		if u, err := url.Parse(raw); err == nil {
			out = append(out, u.Scheme+"://"+u.Host)
		}
	}
	return out
}

func writeError(w http.ResponseWriter, err error) {
	e := oauth.AsError(err)
	status := e.Status()
	var r refusal
	if errors.As(err, &r) {
		status = r.status
	}
	wire.WriteError(w, status, e)
}

func truncate(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
