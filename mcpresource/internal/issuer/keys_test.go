package issuer

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestKeysJustRead: many sequential callers cause one request to the authorization server. After a
// failure the next caller tries at once.
func TestKeysJustRead(t *testing.T) {
	var asked, status atomic.Int32
	status.Store(200)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(int(status.Load()))
		io.WriteString(w,
			`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
	}))
	defer s.Close()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	set := NewKeys(KeysConfig{
		Location: s.URL,
		Client:   Client(nil),
		Now:      func() time.Time { return now },
		Log:      slog.New(slog.DiscardHandler),
	})
	for i, step := range []struct {
		pass         time.Duration
		status, want int32 // want: total requests
	}{{0, 200, 1}, {0, 200, 1}, {retryPause - 1, 200, 1}, {1, 500, 2}, {0, 500, 3}, {0, 200, 4}, {0, 200, 4}} {
		now = now.Add(step.pass)
		status.Store(step.status)
		err := set.refresh(t.Context())
		if asked.Load() != step.want || (err != nil) != (step.status != 200) {
			t.Errorf("step %d: %d requests, %v, want %+v", i, asked.Load(), err, step)
		}
	}
}
