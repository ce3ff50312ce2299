package authserver

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/metadata"
)

// taken returns the outcome of a request as a step of an attempt.
func (s *Server) taken(r *http.Request, rec *request.Record, m measured) attempt.Taken {
	kind := s.paths.kind(r)
	if kind == "" && m.Code == http.StatusNotFound && s.strayed(r) {
		kind = attempt.Discovery
	}
	if kind == "" {
		return attempt.Taken{}
	}
	if kind == attempt.Discovery {
		if want := s.meant(r.URL.Path); want != "" {
			rec.Expect("path", r.URL.Path, []string{want})
		}
	}
	t := attempt.Taken{Kind: kind, Path: r.URL.Path}
	t.Answer.Status, t.Answer.Took = m.Code, float64(m.Duration.Round(10*time.Microsecond))/float64(time.Millisecond)
	if e := rec.Refusal(); e != nil {
		t.Answer.Error, t.Answer.Description = string(e.Code), e.Description
		t.Answer.Reason, t.Answer.Cause = refusal.Detail(e), refusal.Cause(e)
	}
	attrs := rec.Attrs()
	if by := attrOf(attrs, "revoked_by"); by != "" && t.Answer.Cause == attempt.CauseRevoked {
		t.Answer.Reason = "revoked: " + by
	}
	if by := attrOf(attrs, "withheld_by"); by != "" && withholds(t.Answer) {
		t.Answer.Reason = "withheld " + attrOf(attrs, "scope_withheld") + ": " + by
	}
	t.Keys = attempt.Keys{
		Client:     attrOf(attrs, "client_id"),
		ClientName: attrOf(attrs, "client_name"),
		Person:     attrOf(attrs, "user"),
		PersonName: attrOf(attrs, "user_name"),
		Resource:   attrOf(attrs, "resource"),
		Match:      attrOf(attrs, "resource_match"),
		Grant:      attrOf(attrs, "grant"),
	}
	return t
}

// withholds reports whether the rules that withheld scopes belong in a: it is a success, or a
// refusal because no permitted scope was left.
func withholds(a attempt.Answer) bool { return a.Error == "" || a.Cause == attempt.CauseNotPermitted }

func attrOf(attrs []slog.Attr, key string) string {
	i := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == key })
	if i < 0 {
		return ""
	}
	return attrs[i].Value.String()
}

// kind returns the kind of attempt step that a request is, or "".
func (p paths) kind(r *http.Request) attempt.Kind {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return ""
	}
	path, post := strings.TrimPrefix(r.URL.Path, p.prefix), r.Method == http.MethodPost
	switch path {
	case "/register":
		return attempt.Registration
	case "/authorize", "/par", "/device_authorization":
		return attempt.Authorize
	case "/token":
		return attempt.Token
	case "/depart":
		return attempt.Provider
	}
	switch {
	case strings.Contains(path, "/.well-known/o") && !post: // oauth-... and openid-...
		return attempt.Discovery
	case strings.HasPrefix(r.URL.Path, p.callback):
		return attempt.Provider
	case r.URL.Path == p.second, r.URL.Path == p.prove:
		return attempt.SignIn
	case r.URL.Path == p.device:
		return attempt.Consent
	case !post:
		return ""
	case r.URL.Path == p.consent:
		return attempt.Consent
	case slices.Contains([]string{p.login, p.passkey, p.recovery, p.choose}, r.URL.Path):
		return attempt.SignIn
	}
	return ""
}

// strayed reports whether a path differs from an endpoint only by slashes: clients prepend an
// issuer with a trailing slash.
func (s *Server) strayed(r *http.Request) bool { return s.meant(r.URL.Path) != "" }

// meant returns the path that a client probably meant, or "" if the path is right or the intention
// is unclear.
func (s *Server) meant(path string) string {
	known := metadata.AuthorizationServerPaths(s.cfg.Issuer)
	for _, endpoint := range []string{"/authorize", "/token", "/register"} {
		known = append(known, s.paths.prefix+endpoint)
	}
	for _, want := range known {
		if path == want {
			return ""
		}
		if slices.Equal(segments(path), segments(want)) {
			return want
		}
	}
	if strings.Contains(path, "/.well-known/oauth-authorization-server") {
		return known[0]
	}
	return ""
}

func segments(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
}
