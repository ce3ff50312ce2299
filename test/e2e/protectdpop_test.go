package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// TestProtectDPoP: RS-204 RS-205 RS-208 RS-209. One command makes a stdio server accept only tokens
// that are bound to a key. Proofs must have this server's nonce and are valid once, even after a
// kill.
func TestProtectDPoP(t *testing.T) {
	t.Setenv("MCP_AUTHD_DPOP_NONCE", "required")
	t.Setenv("MCP_AUTHD_DPOP_PROOFS", "database")
	command := []string{
		"--listen", nettest.For(t), "--data", t.TempDir(), "--dpop", "required", "--scope", "mcp=use it", "--",
		stdioServer(t),
	}
	p := protect(t, command...)
	d := &demotest.Demo{Issuer: p.Issuer, MCPURL: p.MCPURL}
	t.Run("CL-30 login needs --dpop", func(t *testing.T) {
		steps, err := runLogin(t, demotest.NewPerson(p.Username, p.Password), p.MCPURL)
		if err == nil {
			t.Errorf("without it: %v", steps)
		}
		steps, err = runLogin(t, demotest.NewPerson(p.Username, p.Password), "--dpop", "--call", "test_simple_text",
			p.MCPURL)
		if err != nil {
			t.Errorf("%v: %v", steps, err)
		}
	})
	key, err := dpop.Generate()
	if err != nil {
		t.Fatal(err)
	}
	token := boundToken(t, d, demotest.NewPerson(p.Username, p.Password), key)
	call := func(authorization, proof string) (status int, fault, nonce string) {
		t.Helper()
		r := toolRequest(p.MCPURL, "test_simple_text", authorization)
		if proof != "" {
			r.Header.Set("DPoP", proof)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		for _, c := range challenges(resp.Header) {
			if c.Scheme == "DPoP" {
				fault = c.Params["error"]
			}
		}
		return resp.StatusCode, fault, resp.Header.Get("DPoP-Nonce")
	}
	if status, _, _ := call("Bearer "+token, ""); status != http.StatusUnauthorized {
		t.Errorf("RS-204: as a bearer token: got %d", status)
	}
	status, fault, nonce := call("DPoP "+token, proof(t, key, p.MCPURL, token, ""))
	if status != http.StatusUnauthorized || fault != "use_dpop_nonce" {
		t.Errorf("RS-208: got %d %s", status, fault)
	}
	used := proof(t, key, p.MCPURL, token, nonce)
	if status, fault, _ := call("DPoP "+token, used); status != http.StatusOK {
		t.Fatalf("got %d %s", status, fault)
	}
	again := func(when string) {
		t.Helper()
		if status, fault, _ := call("DPoP "+token, used); status != http.StatusUnauthorized ||
			fault != "invalid_dpop_proof" {
			t.Errorf("RS-209: %s: got %d %s", when, status, fault)
		}
	}
	again("a proof that was used")
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // being killed is not an error
	protect(t, command...)
	again("after the server was killed")
	if status, fault, _ := call("DPoP "+token, proof(t, key, p.MCPURL, token, nonce)); status != http.StatusOK {
		t.Errorf("RS-208: the nonce of before the kill: got %d %s", status, fault)
	}
	thief, err := dpop.Generate()
	if err != nil {
		t.Fatal(err)
	}
	if status, fault, _ := call("DPoP "+token, proof(t, thief, p.MCPURL, token, nonce)); status != 401 {
		t.Errorf("RS-205: with another key: got %d %s", status, fault)
	}
}

// boundToken signs in a user and returns a token that is bound to a key.
func boundToken(t *testing.T, d *demotest.Demo, p *demotest.Person, key *dpop.Signer) string {
	t.Helper()
	id := register(t, d)
	back, err := p.Visit(d.Issuer + "/authorize?" + authorizeQuery(t, d, id).Encode())
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {id}, "code": {back.Query().Get("code")},
		"code_verifier": {verifier}, "redirect_uri": {redirect}, "resource": {d.MCPURL},
	}
	c := &http.Client{Transport: dpop.NewTransport(key, nil)}
	resp, err := c.Post(d.Issuer+"/token", "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		Token string `json:"access_token"`
		Type  string `json:"token_type"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.Type != "DPoP" {
		t.Fatalf("got %s %v", resp.Status, err)
	}
	return out.Token
}
