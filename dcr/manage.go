package dcr

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// managed returns the client ID in the path of a request, or "" for the registration endpoint
// itself. The mux binds it as {client}.
func managed(req *http.Request) string { return req.PathValue("client") }

// errManage is the only answer to a caller without the registration access token of an existing
// client (RFC 7592 §2). It therefore does not reveal which IDs are registered.
var errManage = oauth.NewError(oauth.InvalidToken,
	"The registration access token is missing, or is not that of this client.")

// manage returns the client configuration endpoint (RFC 7592 §2, AS-150) of one client.
func (r *Registry) manage(id string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		out, err := r.configure(req, id)
		switch {
		case errors.Is(err, errManage):
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			writeError(w, err)
		case err != nil:
			r.refused(req.Context(), r.origin(req), err)
			writeError(w, err)
		case out == nil:
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusNoContent)
		default:
			wire.WriteJSON(w, http.StatusOK, out)
		}
	}
}

// configure executes a request. It checks the token before it reads anything.
func (r *Registry) configure(req *http.Request, id string) (*response, error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if len(id) > maxIDLength || !strings.EqualFold(scheme, "Bearer") ||
		!r.sealer.manages(id, strings.TrimSpace(token)) {
		return nil, errManage
	}
	c, err := r.lookup(req.Context(), id)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked):
		return nil, errManage
	case err != nil:
		return nil, unavailable(err)
	case c.Source != storage.SourceDynamic && c.Source != storage.SourceManaged: // created by the administrator
		return nil, errManage
	}
	if req.Method == http.MethodPut { // otherwise a held application could continue under another name
		if err := r.admitsApplication(req.Context(), c); err != nil {
			return nil, err
		}
	}
	secret := ""
	switch req.Method {
	case http.MethodDelete:
		return nil, r.delete(req.Context(), c, r.origin(req))
	case http.MethodPut:
		if c, secret, err = r.replace(req, c); err != nil {
			return nil, err
		}
	}
	out, err := r.response(req.Context(), c, secret)
	return &out, err
}

// delete removes a client permanently and revokes its grants (RFC 7592 §2.3). Its tombstone is
// never removed, so it costs as much as a row, unless the client already paid for a row.
func (r *Registry) delete(ctx context.Context, c storage.Client, from origin) error {
	if c.Source != storage.SourceManaged {
		if err := r.limiter.take(ctx, from, 1); err != nil {
			return err
		}
	}
	if err := r.cfg.Store.DeleteClient(ctx, c.ID, r.cfg.Now()); err != nil {
		return unavailable(err)
	}
	r.Forget(c.ID)
	r.cfg.Audit.Record(ctx, audit.ClientDeleted, slog.String("client_id", c.ID), slog.String("by", "client"))
	return nil
}

// replace registers c again under its ID (RFC 7592 §2.2). Members that the request omits take their
// defaults. From then on the client has a row, which takes precedence over the sealed ID. The row
// is kept until the client is deleted: dropping it would restore redirect URIs that the client has
// given up.
func (r *Registry) replace(req *http.Request, c storage.Client) (storage.Client, string, error) {
	from := r.origin(req)
	if r.cfg.Disabled {
		return c, "", errDisabled
	}
	reg, err := r.prepareReplacement(req, c)
	if err != nil {
		return c, "", r.limiter.takeFor(req.Context(), from, err)
	}
	if err := r.limiter.take(req.Context(), from, reg.units); err != nil {
		return c, "", err
	}
	next := reg.client
	if err := r.cfg.Store.ReplaceClient(req.Context(), next, r.cfg.Now()); err != nil {
		if errors.Is(err, storage.ErrRevoked) {
			return c, "", errManage
		}
		return c, "", unavailable(err)
	}
	r.Forget(c.ID)
	r.registered(req.Context(), from, reg)
	return next, reg.secret, nil
}

// prepareReplacement builds the client that replaces c.
func (r *Registry) prepareReplacement(req *http.Request, c storage.Client) (registration, error) {
	body, err := readBody(req)
	if err != nil {
		return registration{}, err
	}
	if err := checkReplacement(body, c); err != nil {
		return registration{}, err
	}
	m, err := parseRequest(body)
	if err != nil {
		return registration{}, err
	}
	next, err := r.admit(req.Context(), m)
	if err != nil {
		return registration{}, err
	}
	next.ID, next.CreatedAt, next.Source, next.SecretHash = c.ID, c.CreatedAt, storage.SourceManaged, c.SecretHash
	if err := r.admitsApplication(req.Context(), next); err != nil {
		return registration{}, err
	}
	secret := ""
	if !next.HasSecret() {
		next.SecretHash = nil
	} else if next.SecretHash == nil {
		secret = issueSecret(&next)
	}
	units, err := kept(next)
	return registration{client: next, secret: secret, units: units, replaced: true}, err
}

// checkReplacement checks the members that only an update has (RFC 7592 §2.2).
func checkReplacement(body []byte, c storage.Client) error {
	members, err := parseObject(body)
	if err != nil {
		return err
	}
	for _, name := range []string{
		"registration_access_token", "registration_client_uri", "client_secret_expires_at", "client_id_issued_at",
	} {
		if members.Get(name) != nil {
			return oauth.NewError(oauth.InvalidRequest, "The member "+name+" cannot be set.")
		}
	}
	r := reader{members: members}
	id, secret := r.text("client_id", maxIDLength), r.text("client_secret", maxTextLength)
	switch {
	case r.err != nil:
		return r.err
	case id != c.ID:
		return oauth.NewError(oauth.InvalidRequest, "The member client_id must be the id of this client.")
	case secret != "" && !holds(c, secret):
		return oauth.NewError(oauth.InvalidRequest, "The member client_secret is not the secret of this client.")
	}
	return nil
}

func holds(c storage.Client, secret string) bool {
	h := secrets.Hash(secret)
	return c.SecretHash != nil && subtle.ConstantTimeCompare(h[:], c.SecretHash[:]) == 1
}

func unavailable(err error) error {
	e := oauth.NewError(oauth.TemporarilyUnavailable,
		"The registration could not be stored. Please try again.").Because(err)
	e.RetryAfter = 2 * time.Second
	return e
}
