package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestProofsOverReplicas: AS-211 AS-214 RS-205 RS-208 RS-209. With PostgreSQL, a proof of
// possession is valid once over all replicas, and all replicas accept the same nonces.
func TestProofsOverReplicas(t *testing.T) {
	g := newGateways(t, "dpop: required", "dpop: {nonce: required}\n")
	key, err := dpop.Generate()
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"robot"}, "client_secret": {agentSecret},
		"resource": {g.MCPURL},
	}
	ask := func(to *replica, proof string) answer {
		r, _ := http.NewRequest(http.MethodPost, g.Issuer+"/token", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("DPoP", proof)
		if proof == "" {
			r.Header.Del("DPoP")
		}
		return g.do(to, r)
	}
	call := func(to *replica, authorization, proof string) answer {
		r := toolRequest(g.MCPURL, "whoami", authorization)
		if proof != "" {
			r.Header.Set("DPoP", proof)
		}
		return g.do(to, r)
	}
	said := func(a answer) string { // at both endpoints
		var out struct{ Error string }
		_ = json.Unmarshal([]byte(a.body), &out) // another body has no error
		for _, c := range challenges(a.header) {
			if c.Scheme == "DPoP" {
				out.Error = c.Params["error"]
			}
		}
		return strings.TrimSpace(fmt.Sprint(a.status, " ", out.Error))
	}
	one, two := g.replicas[0], g.replicas[1]

	t.Run("AS-213 without a proof there is no token", func(t *testing.T) {
		if got := said(ask(one, "")); got != "400 invalid_dpop_proof" {
			t.Errorf("got %s", got)
		}
	})
	first := ask(one, proof(t, key, g.Issuer+"/token", "", ""))
	nonce := first.header.Get("DPoP-Nonce")
	if said(first) != "400 use_dpop_nonce" || nonce == "" {
		t.Fatalf("AS-214: got %+v", first)
	}
	used := proof(t, key, g.Issuer+"/token", "", nonce)
	var token string
	t.Run("AS-211 one proof at the token endpoints of both", func(t *testing.T) {
		tokens := make(chan string, 32)
		got := g.race(func(to *replica) string {
			a := ask(to, used)
			var out struct {
				Token string `json:"access_token"`
				Type  string `json:"token_type"`
			}
			if a.status == http.StatusOK && json.Unmarshal([]byte(a.body), &out) == nil && out.Type == "DPoP" {
				tokens <- out.Token
			}
			return said(a)
		})
		if got["200"] != 1 || got["400 invalid_dpop_proof"] != 31 {
			t.Fatalf("got %v, want one token and 31 times invalid_dpop_proof", got)
		}
		token = <-tokens
	})
	if t.Failed() {
		return
	}
	t.Run("RS-204 RS-208 the nonce is that of the gateway, at any replica", func(t *testing.T) {
		if got := said(call(one, "Bearer "+token, "")); !strings.HasPrefix(got, "401") {
			t.Errorf("as a bearer token: got %s", got)
		}
		a := call(two, "DPoP "+token, proof(t, key, g.MCPURL, token, nonce))
		if said(a) != "401 use_dpop_nonce" {
			t.Errorf("with the nonce of the token endpoint: got %s", said(a))
		}
		nonce = a.header.Get("DPoP-Nonce")
		if a := call(one, "DPoP "+token, proof(t, key, g.MCPURL, token, nonce)); a.status != http.StatusOK {
			t.Errorf("got %+v", a)
		}
	})
	atMCP := proof(t, key, g.MCPURL, token, nonce)
	t.Run("RS-209 one proof at the gateways of both", func(t *testing.T) {
		got := g.race(func(to *replica) string { return said(call(to, "DPoP "+token, atMCP)) })
		if got["200"] != 1 || got["401 invalid_dpop_proof"] != 31 {
			t.Errorf("got %v, want one answer and 31 times invalid_dpop_proof", got)
		}
	})
	t.Run("AS-211 RS-209 a replica that was killed knows them when it is back", func(t *testing.T) {
		one.kill()
		one.start(t, g.config)
		if got := said(ask(one, used)); got != "400 invalid_dpop_proof" {
			t.Errorf("at the token endpoint: got %s", got)
		}
		if got := said(call(one, "DPoP "+token, atMCP)); got != "401 invalid_dpop_proof" {
			t.Errorf("at the MCP server: got %s", got)
		}
		if a := call(one, "DPoP "+token, proof(t, key, g.MCPURL, token, nonce)); a.status != http.StatusOK {
			t.Errorf("a new proof: got %+v", a)
		}
	})
}

func challenges(h http.Header) []oauth.Challenge {
	list, _ := oauth.ParseChallenges(h.Values("WWW-Authenticate")) // an invalid header has no challenges
	return list
}
