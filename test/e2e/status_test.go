package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestRevocationReachesResourceServers checks that a resource server that verifies tokens locally
// refuses a token soon after its grant was revoked.
func TestRevocationReachesResourceServers(t *testing.T) {
	dir := t.TempDir()
	d := demotest.Start(t,
		demotest.Options{Args: []string{"--data", dir}, Env: []string{"MCP_AUTHD_TOKENS_STATUS_TTL=1s"}})
	tokens := signIn(t, d, d.Person(), register(t, d))
	token, _ := tokens["access_token"].(string)
	v, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{Issuer: d.Issuer, RequireStatus: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := v.Validate(t.Context(), mcpresource.Credential{Token: token}); err != nil {
			t.Fatalf("a live token: %v", err)
		}
	}
	out, err := exec.Command(program.Authd(t), "grant", "list", "--json", "--data", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), `"id": "`)
	id, _, _ := strings.Cut(rest, `"`)
	if out, err := exec.Command(program.Authd(t), "grant", "revoke", id, "--data", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wait.Until(t, "AS-226 RS-51: the token ends with its grant", func() bool {
		_, err := v.Validate(t.Context(), mcpresource.Credential{Token: token})
		if err != nil && !errors.Is(err, mcpresource.ErrInvalidToken) {
			t.Fatal(err)
		}
		return err != nil
	})
}
