package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestTwoServers uses one of our servers as a corporate identity provider, which another one
// trusts.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	outer, c := t, newPair(t, "", nettest.For(t))
	t.Run("AS-179 AS-244 a person signs in at one, and calls a tool at the other", func(t *testing.T) {
		c, ada := c.of(t), c.hire("ada")
		handler, err := extauth.NewEnterpriseHandler(&extauth.EnterpriseHandlerConfig{
			IdPIssuerURL: c.issuer, IdPCredentials: c.desk, MCPScopes: []string{"mcp"},
			MCPAuthServerURL: c.partner.issuer, MCPResourceURI: c.partner.resource,
			MCPCredentials: credentials("agent", agentSecret),
			IDTokenFetcher: func(ctx context.Context) (*oauth2.Token, error) { return c.signIn(ctx, ada) },
		})
		if err != nil {
			t.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "1"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: c.partner.resource, OAuthHandler: handler}, nil)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, c.server.log.String(), c.partner.replicas[0].log.String())
		}
		defer session.Close()
		out, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
		if err != nil || out.IsError {
			t.Fatalf("%v %v", err, out)
		}
		who, _ := out.StructuredContent.(map[string]any)
		if user, _ := who["user"].(string); !strings.HasPrefix(user, "usr_") || who["client"] != "agent" {
			t.Errorf("got %v", who)
		}
		if page := strings.Join(ada.Pages, ""); strings.Contains(page, `value="approve"`) {
			t.Error("AS-193: the person was asked for consent")
		}
	})
	t.Run("AS-196 AS-181 the assertion verifies by the published keys alone, and is good once", func(t *testing.T) {
		c, bob := c.of(t), c.hire("bob")
		_, assertion := c.asserted(bob)
		c.verify(assertion)
		c.partner.token(c.partner.asAgent(assertion))
		c.partner.wantRefused(c.partner.asAgent(assertion))
		nobody := c.partner.asAgent(assertion)
		nobody.Set("client_id", "desk")
		if status, out := post(t, c.issuer+"/token", nobody); status == http.StatusOK {
			t.Errorf("AS-244: the company redeems its own assertion: %v", out)
		}
	})
	t.Run("AS-245 who is disabled at one loses everything at the other", func(t *testing.T) {
		c, eve := c.of(t), c.hire("eve")
		other, token := c.admitted(c.hire("max")), c.admitted(eve)
		idToken, unused := c.asserted(eve)
		nextSecond(t)
		c.run("", "user", "disable", "eve")
		c.partner.ends(token)
		c.partner.wantRefused(c.partner.asAgent(unused))
		if got, err := c.exchange(idToken); err == nil {
			t.Errorf("AS-196: the company asserts who is disabled: %s", got)
		}
		if got := c.partner.call(other); got != http.StatusOK {
			t.Errorf("for another person the guard answers %d", got)
		}
		c.run("", "user", "enable", "eve")
		nextSecond(t)
		c.admitted(demotest.NewPerson("eve", companyPassword))
	})
	t.Run("AS-245 what happens while the other is down ends when it is back", func(t *testing.T) {
		c, dan := c.of(t), c.hire("dan")
		token := c.admitted(dan)
		down := c.partner.replicas[0]
		down.stop()
		before := len(c.wire.events())
		c.run("", "user", "disable", "dan")
		c.partner.soon("the event was sent in vain", func() bool { return len(c.wire.events()) > before })
		down.start(outer, c.partner.config)
		c.partner.ends(token)
	})
}

// TestTwoServersAfterKill: AS-245. The company's server is killed while it sends an event to the
// partner. It sends the event again, and the partner applies it once.
func TestTwoServersAfterKill(t *testing.T) {
	lane.Long(t, "internal/transmit tests what is sent again")
	t.Parallel()
	c := newPair(t, "", nettest.For(t))
	token := c.admitted(c.hire("ada"))
	arrived, gone := make(chan struct{}), make(chan struct{})
	c.wire.do(func(_ http.ResponseWriter, r *http.Request) bool {
		close(arrived)
		<-r.Context().Done()
		close(gone)
		return true
	})
	c.run("", "user", "disable", "ada")
	<-arrived
	c.server.kill()
	<-gone
	if got := c.partner.call(token); got != http.StatusOK {
		t.Fatalf("the partner was not told, and its guard answers %d", got)
	}
	c.wire.do(nil)
	c.server.start(t, c.config)
	c.partner.ends(token)
	ids := map[string]int{}
	for _, e := range c.wire.events() {
		ids[claimsOf(t, e).ID]++
	}
	if len(ids) == 0 || ids[claimsOf(t, c.wire.events()[0]).ID] != 2 {
		t.Errorf("the first event was not sent again with its id: %v", ids)
	}
}

// TestTwoServersOverReplicas: AS-245. One event is pushed to two replicas of the partner
// concurrently.
func TestTwoServersOverReplicas(t *testing.T) {
	c := newPair(t, pgtest.Start(t).Database(t), nettest.For(t), nettest.For(t))
	token := c.admitted(c.hire("ada"))
	c.wire.do(func(w http.ResponseWriter, _ *http.Request) bool { // the test forwards them
		w.WriteHeader(http.StatusAccepted)
		return true
	})
	nextSecond(t)
	c.run("", "user", "disable", "ada")
	var event string
	c.partner.soon("the event is sent", func() bool {
		i := slices.IndexFunc(c.wire.events(), func(e string) bool {
			_, ok := claimsOf(t, e).Events[secevent.AccountDisabled]
			return ok
		})
		if i >= 0 {
			event = c.wire.events()[i]
		}
		return i >= 0
	})
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			<-begin
			to := c.partner.replicas[i%2]
			resp, err := http.Post(to.at("/events"), "application/secevent+jwt", strings.NewReader(event))
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted {
				t.Errorf("got %s", resp.Status)
			}
		})
	}
	close(begin)
	wg.Wait()
	c.partner.ends(token)
	outcomes := map[string]int{}
	for _, r := range c.partner.replicas {
		for line := range strings.Lines(r.log.String()) {
			var e struct{ Event, Outcome string }
			if json.Unmarshal([]byte(line), &e) == nil && e.Event == "securityevent.received" {
				outcomes[e.Outcome]++
			}
		}
	}
	if outcomes["carried out"] != 1 || outcomes["repeated"] != 31 {
		t.Errorf("got %v, want it carried out once", outcomes)
	}
	c.run("", "user", "enable", "ada")
	nextSecond(t)
	again := c.admitted(demotest.NewPerson("ada", companyPassword))
	for _, r := range c.partner.replicas {
		resp, err := http.Post(r.at("/events"), "application/secevent+jwt", strings.NewReader(event))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	// The guard learns the end of a later token, so it would have learned an earlier end.
	eve := c.admitted(c.hire("eve"))
	c.wire.do(nil)
	c.run("", "user", "disable", "eve")
	c.partner.ends(eve)
	if got := c.partner.call(again); got != http.StatusOK {
		t.Errorf("an event that came again ends what began later: the guard answers %d", got)
	}
}

// verify checks an ID-JAG like any other authorization server (ID-JAG §4.4.1).
func (c *company) verify(assertion string) {
	c.t.Helper()
	resp, err := http.Get(c.issuer + "/jwks.json")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		c.t.Fatal(err)
	}
	token, err := jwt.ParseSigned(assertion, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		c.t.Fatal(err)
	}
	header := token.Headers[0]
	if header.ExtraHeaders["typ"] != oauth.IdentityAssertionType {
		c.t.Errorf("got %v", header)
	}
	var claims oauth.IdentityAssertionClaims
	keys := set.Key(header.KeyID)
	if len(keys) != 1 {
		c.t.Fatalf("%d keys have the id %q", len(keys), header.KeyID)
	}
	if err := token.Claims(keys[0], &claims); err != nil {
		c.t.Fatal(err)
	}
	if claims.Issuer != c.issuer || claims.Audience != c.partner.issuer || claims.ClientID != "agent" ||
		claims.Resource != c.partner.resource || claims.Scope != "mcp" || claims.Subject == "" ||
		claims.Expires-claims.IssuedAt != 300 {
		c.t.Errorf("got %+v", claims)
	}
}

// setClaims are the claims of a security event that tests check.
type setClaims struct {
	ID     string                    `json:"jti"`
	Events map[string]map[string]any `json:"events"`
}

func claimsOf(t *testing.T, token string) (out setClaims) {
	t.Helper()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err == nil {
		err = parsed.UnsafeClaimsWithoutVerification(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
