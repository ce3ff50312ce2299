package authserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/wire"
)

// TestClientHangsUp checks that a request that fails because its client has closed the connection
// is not a failure of the server: not in the log, the metrics or the connection attempts (OP-05).
func TestClientHangsUp(t *testing.T) {
	var hangUp context.CancelFunc
	var answered []int
	r := newRig(t, func(c *Config) {
		store := storagetest.NewFailing(c.Store.(storage.Store))
		store.Surround(func(verb string, do func() error) error {
			if verb == "RotateRefresh" && hangUp != nil {
				hangUp()
			}
			return do()
		})
		c.Store = store
		c.Answered = func(a Answered) {
			if a.Endpoint == "token" {
				answered = append(answered, a.Status)
			}
		}
	})
	p := r.person()
	token := p.signIn()["refresh_token"]
	answered = nil
	ctx, cancel := context.WithCancel(t.Context())
	hangUp = cancel
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, r.http.URL+"/token",
		strings.NewReader(refreshForm(token).Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Handler().ServeHTTP(httptest.NewRecorder(), req)
	if ctx.Err() == nil {
		t.Fatal("the store was not asked")
	}
	if len(answered) != 1 || answered[0] != wire.StatusHungUp {
		t.Errorf("OP-05 counted as %v", answered)
	}
	if log := r.log.String(); strings.Contains(log, `"level":"ERROR"`) || !strings.Contains(log, `"status":499`) {
		t.Errorf("OP-05 the log says %s", log)
	}
	hangUp = nil
	if _, out := p.token(refreshForm(token)); out["access_token"] == nil {
		t.Errorf("the refresh token is used up: %v", out)
	}
}
