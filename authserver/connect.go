package authserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// connectRequest asks a person to let a resource server have more of their account at a
// provider. It travels sealed in a URL that a tool or a client shows: nothing can be read
// from it, it opens nothing, and it is worth nothing to anybody but that person, signed in
// here (RS-200, RS-201, RS-203).
type connectRequest struct {
	UserID   string       `json:"u"`
	Provider string       `json:"p"`
	Resource string       `json:"r"` // canonical: who is to get the access
	Scopes   oauth.Scopes `json:"s"` // as the provider calls them
	Expires  int64        `json:"e"` // seconds since the epoch
}

const connectTTL = 15 * time.Minute

func (s *Server) newConnect(t delegation.TokenRequest, missing oauth.Scopes) connectRequest {
	if len(missing) == 0 {
		missing = t.Scopes
	}
	return connectRequest{t.UserID, t.Provider, t.Resource, missing, s.cfg.Now().Add(connectTTL).Unix()}
}

func (s *Server) connectURL(c connectRequest) string {
	content, _ := json.Marshal(c) // strings and a number
	sealed := s.ring.Seal(purposeConnect, content, nil)
	return s.cfg.Issuer + "/connect/" + base64.RawURLEncoding.EncodeToString(sealed)
}

var errConnectLink = oauth.NewError(oauth.InvalidRequest, "This link is not valid, or more than a quarter of an hour old. Do again in your application what you were doing, to get a new one.")

// openConnect reads what connectURL has sealed. When all that is wrong is its age, the
// request is returned beside the error.
func (s *Server) openConnect(sealed string) (connectRequest, error) {
	var c connectRequest
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return c, errConnectLink.Because(err)
	}
	content, err := s.ring.Open(purposeConnect, raw, nil)
	if err != nil {
		return c, errConnectLink.Because(err)
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return connectRequest{}, errConnectLink.Because(err)
	}
	if c.Expires <= s.cfg.Now().Unix() {
		return c, errConnectLink
	}
	return c, nil
}

// connectState is what the form carries along, sealed and bound to the browser.
type connectState struct {
	Request string `json:"r"`
	UserID  string `json:"u"`
}

// handleConnect serves /connect/{request}.
func (s *Server) handleConnect(w http.ResponseWriter, r *http.Request) {
	sealed := r.PathValue("request")
	req, err := s.openConnect(sealed)
	if err != nil {
		s.showLink(w, r, http.StatusBadRequest, err)
		return
	}
	token, _ := s.sessions.Token(r)
	v, err := s.visitor(r.Context(), token, storage.VisitKey{})
	switch {
	case err != nil:
		s.showError(w, r, http.StatusServiceUnavailable, err)
	case v == nil:
		s.showLogin(w, r, http.StatusOK, decision{farewell: s.farewell(r.Context(), token)}, loginState{Connect: sealed}, "", "")
	case v.User.ID != req.UserID:
		s.refuseConnect(r.Context(), req, v)
		s.showNotYours(w, r)
	case r.Method == http.MethodPost:
		s.decideConnect(w, r, sealed, req)
	default:
		s.showConnect(w, r, sealed, req, v)
	}
}

// refuseConnect leaves a trace: somebody may have been sent another person's link, to tie
// an account of theirs to that person's.
func (s *Server) refuseConnect(ctx context.Context, req connectRequest, v *storage.Visit) {
	s.cfg.Audit.Record(ctx, audit.ConnectRefused, slog.String("user", v.User.ID), slog.String("for_user", req.UserID),
		slog.String("connector", req.Provider), slog.String("resource", req.Resource))
}

func (s *Server) decideConnect(w http.ResponseWriter, r *http.Request, sealed string, req connectRequest) {
	form, ok := s.readPageForm(w, r)
	if !ok {
		return
	}
	var state connectState
	err := s.sessions.OpenStep(purposeConnect, s.sessions.Browser(w, r), form.Get("step"), &state)
	if err != nil || state.Request != sealed || state.UserID != req.UserID {
		s.showStale(w, r)
		return
	}
	switch form.Get("decision") {
	case "approve":
		s.writeDecision(w, r, s.depart(r.Context(), decision{}, departState{
			Provider: req.Provider, Errand: delegation.PurposeExtend, UserID: req.UserID, Trip: tripState{Connect: sealed},
		}, s.networks(r), delegation.Request{Scopes: req.Scopes}))
	case "deny":
		s.showConnected(w, r, req, true)
	default:
		s.showError(w, r, http.StatusBadRequest, oauth.NewError(oauth.InvalidRequest, "The form was not complete."))
	}
}

// resourceNamed is the resource as people know it.
func (s *Server) resourceNamed(ctx context.Context, uri string) storage.Resource {
	if catalog, err := s.catalog.Load(ctx); err == nil {
		if r, ok := catalog.Lookup(uri); ok {
			return r
		}
	}
	return storage.Resource{URI: uri, Name: strings.TrimPrefix(uri, "https://")}
}
