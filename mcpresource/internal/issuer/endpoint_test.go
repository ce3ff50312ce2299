package issuer

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestDiscoveryIsShared: while an authorization server is silent, callers wait for one discovery together
// and not for those of all who came before them.
func TestDiscoveryIsShared(t *testing.T) {
	const callers, slow = 16, 200 * time.Millisecond
	var asked atomic.Int32
	var come sync.WaitGroup
	come.Add(callers)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		come.Wait()
		time.Sleep(slow)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer s.Close()
	e, err := NewEndpoint(EndpointConfig{
		Name: "token endpoint", Issuer: s.URL, Locate: func(m Metadata) string { return m.Token },
		ClientID: "a", ClientSecret: "b", Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			come.Done()
			if _, _, err := e.Post(t.Context(), nil); err == nil {
				t.Error("it was found")
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n > 8 { // a discovery asks at several places, and a late caller for another
		t.Errorf("the authorization server was asked %d times", n)
	}
}
