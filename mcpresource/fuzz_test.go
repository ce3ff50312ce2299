package mcpresource

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// FuzzHeaders: whatever a client sends, no caller gets access without their own token, no token
// reaches the handler, and every refusal can be parsed.
func FuzzHeaders(f *testing.F) {
	f.Add("Bearer alice", "", "read", "2026-07-28", "s1", "", "mcp.example.com")
	f.Add("DPoP bound-alice", "a.b.c", "=?base64?cmVhZA==?=", "", "", "https://mcp.example.com", "MCP.example.com:443")
	f.Add("bearer  alice ,", "x", "=?base64?\xff?=", "zzz", "\x00", "null", "[::1]:80")
	f.Add("Basic YTpi", "", "", "", strings.Repeat("s", 5000), "http://a@b", "")
	h := newECHolder(f)
	r := boundRig(f, h, func(c *Config) {
		c.Audit, c.CORS, c.Limits.Calls.PerSecond = nil, true, -1
		c.DPoP = &DPoP{NonceKey: make([]byte, 32)}
	})
	var reached *http.Request
	guarded := r.Protect(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { reached = req }))
	statuses := []int{200, 204, 400, 401, 403, 404, 429, 503}
	f.Fuzz(func(t *testing.T, authorization, proof, name, version, session, origin, host string) {
		reached = nil
		req := httptest.NewRequest(http.MethodPost, resource, strings.NewReader(tool("read")))
		req.Host = host
		for k, v := range map[string]string{
			"Authorization": authorization, "DPoP": proof, "Mcp-Name": name, "Mcp-Protocol-Version": version,
			"Mcp-Session-Id": session, "Origin": origin,
		} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, req)
		if !slices.Contains(statuses, w.Code) {
			t.Errorf("got %d", w.Code)
		}
		if c, err := oauth.ParseChallenges(w.Header().Values("WWW-Authenticate")); err != nil ||
			w.Code == 401 && len(c) == 0 {
			t.Errorf("%d %q: %v", w.Code, w.Header().Values("WWW-Authenticate"), err)
		}
		if reached == nil {
			return
		}
		p, ok := FromContext(reached.Context())
		fields := strings.Fields(authorization)
		if !ok || len(fields) != 2 || !strings.EqualFold(fields[0], "Bearer") || people(r.now)[fields[1]] == nil ||
			p.Key() != people(r.now)[fields[1]].Key() {
			t.Errorf("%q let %+v in", authorization, p)
		}
		if len(reached.Header.Values("Authorization"))+len(reached.Header.Values("DPoP")) > 0 {
			t.Errorf("the handler sees %v", reached.Header)
		}
	})
}
