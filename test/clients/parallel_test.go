package clients

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// TestParallelRefresh: the SDKs do not share a refresh among concurrent requests, so n requests
// with one expired access token present the same refresh token n times.
func TestParallelRefresh(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		t.Run("AS-96 TypeScript SDK "+version+": five calls with one expired token are all answered",
			func(t *testing.T) {
				d := demotest.Start(t, demotest.Options{
					Env: []string{"MCP_AUTHD_TOKENS_ACCESS_TTL=2s", logRefreshes},
				})
				p := newPerson(t, d)
				out := run(t, p, npmtest.Command(t, "node", "clients/parallel.mjs", version, d.MCPURL, "3000", "5"))
				if got := strings.Count(out, "answered "); got != 10 || strings.Count(out, "usr_") < 10 ||
					p.signIns() != 1 {
					t.Errorf("got %d of 10 answers with %d sign-ins\n%s", got, p.signIns(), p.output())
				}
				first, again := strings.Count(d.Log(), `"event":"token.refreshed"`),
					strings.Count(d.Log(), `"event":"token.replayed"`)
				if first == 0 || again == 0 {
					t.Errorf("got %d refreshes and %d repetitions: none were parallel", first, again)
				}
				t.Logf("%d refreshes, %d of them answered like one before", first+again, again)
			})
	}
}
