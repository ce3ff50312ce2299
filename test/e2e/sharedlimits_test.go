package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// TestReplicasShareLimits: AS-144, AS-145. Two replicas that count in PostgreSQL together accept as
// many requests as one: of 32 concurrent registrations, twelve.
func TestReplicasShareLimits(t *testing.T) {
	database := pgtest.Start(t).Database(t)
	first, second := nettest.For(t), nettest.For(t)
	config := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	yaml := "issuer: http://" + first + "\ndata_dir: " + t.TempDir() + "\nsecret_key: " + strings.Repeat("k", 40) +
		"\ndatabase: {url: \"" + database + "\"}\nlimits: {counted_in: database}\n" +
		"registration: {rate_per_minute: 6}\n" +
		"resources: [{uri: \"http://127.0.0.1:9/mcp\", name: R, scopes: [{name: mcp, description: use it, default: true}]}]\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	startReplica(t, config, first)
	startReplica(t, config, second)

	const wanted = 12 // twice the rate per minute
	var registered, refused atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range 32 {
		at := []string{first, second}[i%2]
		wg.Go(func() {
			body := strings.NewReader(`{"redirect_uris":["http://127.0.0.1:33418/callback"],"token_endpoint_auth_method":"none"}`)
			resp, err := http.Post("http://"+at+"/register", "application/json", body)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			switch resp.StatusCode {
			case http.StatusCreated:
				registered.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
			default:
				t.Errorf("got %d", resp.StatusCode)
			}
		})
	}
	wg.Wait()
	back := int64(time.Since(begun) / (10 * time.Second)) // tokens refilled meanwhile
	got := registered.Load()
	if got < wanted || got > wanted+back || got+refused.Load() != 32 {
		t.Errorf("%d were registered and %d refused, want %d and the rest", got, refused.Load(), wanted)
	}
}
