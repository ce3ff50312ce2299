package thirdparty

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const (
	logoutPurpose = "upstream logout"
	maxLogout     = 16 << 10 // bytes of a request; a logout token takes about one thousand
	logoutTries   = 3
)

// junkAllowed limits how many invalid tokens the logout endpoint of each connector verifies. Valid
// tokens do not count: anyone can send invalid ones, and the server must still accept the
// provider's logouts (Back-Channel Logout §2.8).
const junkAllowed = 20 // per second and connector; the burst is ten times as many

// Logout returns the handler for logout tokens (OpenID Connect Back-Channel Logout 1.0) at POST
// {issuer}/callback/{connector}/logout. It ends the sessions that a token names and everything that
// depends on them. The response is 200 on success, even if there was nothing to end, and 400 for an
// invalid token (§2.8).
func (d *Delegation) Logout() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store") // §2.8
		status := d.serveLogout(w, r)
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
	})
}

func (d *Delegation) serveLogout(w http.ResponseWriter, r *http.Request) (status int) {
	c, ok := d.byID[connectorOf(r.URL.Path)]
	switch {
	case !ok:
		return http.StatusNotFound
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	}
	token, ok := logoutToken(w, r)
	if !ok {
		return http.StatusBadRequest
	}
	err := d.logOut(r.Context(), c, token)
	switch {
	case err == nil:
		return http.StatusOK
	case d.junk.Take(bounded.Draw[string]{Key: c.ID, Rate: bounded.PerSecond(junkAllowed, 10*junkAllowed)}) > 0:
		return http.StatusTooManyRequests
	case errors.Is(err, provider.ErrUnreachable): // its keys are unavailable: let it retry
		return http.StatusServiceUnavailable
	}
	d.cfg.Logger.LogAttrs(r.Context(), slog.LevelInfo, "logout token refused", slog.String("connector", c.ID),
		slog.Any("cause", err))
	return http.StatusBadRequest
}

// connectorOf returns the ID in .../callback/{connector}/logout.
func connectorOf(path string) string {
	path = strings.TrimSuffix(path, "/logout")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// logoutToken returns the only parameter of the request (§2.5).
func logoutToken(w http.ResponseWriter, r *http.Request) (token string, ok bool) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return "", false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogout))
	if err != nil {
		return "", false
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", false
	}
	token = single(form, "logout_token")
	return token, token != ""
}

// logOut ends the sessions that a logout token names and records the token as used. A copy of it
// then has no effect after the user has signed in again.
func (d *Delegation) logOut(ctx context.Context, c *connector, token string) error {
	l, err := c.VerifyLogout(ctx, token)
	if err != nil {
		return err
	}
	key := storage.UpstreamKey{Connector: c.ID, Subject: l.Subject, SessionID: l.SessionID}
	use := storage.Use{Purpose: logoutPurpose, ID: c.ID + " " + l.ID, Expires: l.ForgetAt}
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		_, err = d.endOnce(ctx, reasonLoggedOut, use, key)
		if err == nil || errors.Is(err, storage.ErrSpent) || pause >= 100<<logoutTries*time.Millisecond {
			return err
		}
		if waited := wait(context.WithoutCancel(ctx), pause); waited != nil {
			return waited
		}
	}
}
