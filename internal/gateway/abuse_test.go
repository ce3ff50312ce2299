package gateway

import (
	"net/http"
	"strings"
	"testing"
)

// TestDisguised: some servers read other headers than those that were sent.
func TestDisguised(t *testing.T) {
	var got *http.Request
	g := front(t, Config{Headers: http.Header{"X-Api-Key": {"ours"}}}, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("NEL", `{"report_to":"x","max_age":1}`)
		w.Header().Set("Report-To", `{"group":"x"}`)
	})
	resp, _ := post(t, g.URL, ping, map[string]string{
		"X_Api_Key": "evil", "X_Forwarded_For": "evil", "X-Original-Url": "/evil", "X-Rewrite-Url": "/evil",
		"X-Forwarded-Prefix": "/evil", "X-Forwarded-User": "evil",
	})
	for name, v := range got.Header {
		if strings.Contains(strings.Join(v, ""), "evil") {
			t.Errorf("the MCP server gets %s: %s", name, v)
		}
	}
	if resp.Header.Get("Nel") != "" || resp.Header.Get("Report-To") != "" {
		t.Error("the MCP server has browsers report what is asked of our origin")
	}
}
