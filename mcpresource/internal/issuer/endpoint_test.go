package issuer

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/metadata"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDiscoveryIsShared: while an authorization server does not answer, all callers wait for the
// same discovery. No caller waits for the discoveries of earlier callers.
func TestDiscoveryIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const server = "https://auth.example.com"
		var asked atomic.Int32
		silent := make(chan struct{})
		e, err := NewEndpoint(EndpointConfig{
			Name: "token endpoint", Issuer: server, Locate: func(m Metadata) string { return m.Token },
			ClientID: "a", ClientSecret: "b", Timeout: time.Minute,
			Client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				asked.Add(1)
				<-silent
				w := httptest.NewRecorder()
				w.WriteHeader(http.StatusBadGateway)
				return w.Result(), nil
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, _, err := e.Post(t.Context(), nil); err == nil {
					t.Error("it was found")
				}
			})
		}
		synctest.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("%d questions are under way, want 1", n)
		}
		close(silent)
		all.Wait()
		if n, want := asked.Load(), len(metadata.AuthorizationServerPaths(server)); int(n) != want {
			t.Errorf("the authorization server was asked %d times, want once at each of %d places", n, want)
		}
	})
}
