package e2e

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestPushedOverReplicas: AS-228 AS-242. A request that is pushed to one replica is opened at
// another, by one browser.
func TestPushedOverReplicas(t *testing.T) {
	g := newGateways(t, "", "")
	id := register(t, g.Demo)
	push := func(to *replica) string {
		t.Helper()
		status, out := post(t, to.at("/par"), authorizeQuery(t, g.Demo, id))
		uri, _ := out["request_uri"].(string)
		if status != http.StatusCreated || uri == "" {
			t.Fatalf("got %d %v", status, out)
		}
		return uri
	}
	link := func(uri string) string {
		return "/authorize?" + url.Values{"client_id": {id}, "request_uri": {uri}}.Encode()
	}
	t.Run("AS-242 of 32 browsers one gets a request", func(t *testing.T) {
		uri := push(g.replicas[0])
		got := g.race(func(to *replica) string {
			jar, _ := cookiejar.New(nil) // cannot fail without options
			browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			}}
			resp, err := browser.Get(to.at(link(uri)))
			if err != nil {
				return err.Error()
			}
			defer resp.Body.Close()
			return fmt.Sprint(resp.StatusCode)
		})
		if got["303"] != 1 || got["400"] != 31 {
			t.Errorf("got %v, want one that continues", got)
		}
	})
	t.Run("AS-228 a request of one replica becomes tokens at the other, once", func(t *testing.T) {
		uri := push(g.replicas[0])
		back, err := demotest.NewPerson(g.Username, g.Password).Visit(g.replicas[1].at(link(uri)))
		if err != nil {
			t.Fatal(err)
		}
		code := url.Values{
			"grant_type": {"authorization_code"}, "client_id": {id}, "code": {back.Query().Get("code")},
			"code_verifier": {verifier}, "redirect_uri": {redirect},
		}
		if status, out := post(t, g.replicas[0].at("/token"), code); status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		for _, r := range g.replicas {
			_, err := demotest.NewPerson(g.Username, g.Password).Visit(r.at(link(uri)))
			if err == nil || !strings.Contains(err.Error(), "400") {
				t.Errorf("in another browser: got %v", err)
			}
		}
	})
}
