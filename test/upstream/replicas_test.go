package upstream

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestReplicas: three servers on one PostgreSQL share one session at a provider. Its refresh tokens
// are valid once, and it revokes everything if one is used twice. Its access tokens are always
// about to expire, so that every check refreshes. The provider is slow, so that the servers
// conflict.
func TestReplicas(t *testing.T) {
	lane.Long(t, "thirdparty tests replicas")
	t.Parallel()
	i := plan(t)
	i.config["database"] = map[string]any{"url": pgtest.Start(t).Database(t)}
	up := i.node("node", idptest.Options{TokenTTL: 30 * time.Second}, nil)
	servers := []string{i.issuer}
	i.start()
	for range 2 {
		address := nettest.For(t)
		i.replica(address)
		servers = append(servers, "http://"+address)
	}
	a, alice := newApp(t), idptest.NewPerson(idptest.Alice)
	id := i.register(t, "An application", a.redirect())
	back, err := alice.Visit(i.link(id, a.redirect()), a.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := i.redeem(t, id, a.redirect(), back.Query().Get("code"))

	up.Slow(300 * time.Millisecond)
	const least = 5 // refreshes
	began := time.Now()
	var wg sync.WaitGroup
	for _, server := range servers {
		for range 4 {
			wg.Go(func() {
				wait.Poll(wait.Bound, func() bool {
					if status, active := i.introspect(t, server, g.access); status != http.StatusOK || !active {
						t.Errorf("introspection: got %d, active: %t", status, active)
						return true
					}
					return up.TokenCalls("refresh_token") >= least
				})
			})
		}
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	t.Run("AS-219 every refresh token of the provider is used once, by one of the servers, and none is lost",
		func(t *testing.T) {
			used := map[string]int{}
			for _, r := range up.Requests() {
				if token := r.Form.Get("refresh_token"); r.Path == "/token" && token != "" {
					used[token]++
					if used[token] > 1 || r.Status != http.StatusOK {
						t.Errorf("refresh %d of a token: %d", used[token], r.Status)
					}
				}
			}
			lasted := time.Since(began)
			most := int(lasted/(checkEvery*9/10)) + 1
			if n := len(used); n > most || n < least {
				t.Errorf("%d refreshes in %s, want %d to %d", n, lasted, least, most)
			}
			t.Logf("%d refreshes in %s by %d servers", len(used), lasted, len(servers))
		})
	t.Run("AS-96 the client's own refreshes at all of them", func(t *testing.T) {
		for _, server := range servers {
			if status, out := g.refreshed(t, server); status != http.StatusOK {
				t.Fatalf("got %d %v", status, out)
			}
		}
	})
	t.Run("AS-218 revoked, it ends at all of them", func(t *testing.T) {
		up.Slow(0)
		up.Revoke(t, idptest.Alice)
		i.dies(t, g.access)
		for _, server := range servers {
			if status, active := i.introspect(t, server, g.access); status != http.StatusOK || active {
				t.Errorf("introspection: got %d, active: %t", status, active)
			}
		}
		if i.events("provider.ended") != 1 {
			t.Errorf("the end is in the logs %d times", i.events("provider.ended"))
		}
	})
}

// introspect introspects a token at one of the servers, as the MCP server.
func (i *installation) introspect(t *testing.T, server, token string) (status int, active bool) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPost, server+"/introspect",
		strings.NewReader(url.Values{"token": {token}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(resourceClient, url.QueryEscape(resourceSecret))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, false
	}
	defer resp.Body.Close()
	var body strings.Builder
	_ = resp.Write(&body)
	return resp.StatusCode, strings.Contains(body.String(), `"active":true`)
}
