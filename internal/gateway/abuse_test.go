package gateway

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
)

// TestDisguised checks header names in spellings that some servers confuse with others.
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
		t.Error("the MCP server makes browsers report requests to this origin")
	}
}

// TestInformational checks that informational responses of an MCP server (RFC 9110 §15.2) do not
// bypass the header rules, and do not remove the guard's own headers.
func TestInformational(t *testing.T) {
	inner := front(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "mcp-authd=evil")
		w.Header().Set("Link", "<https://evil.example>; rel=preload")
		for range 8 { // like a server that keeps reporting that it is busy
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{}`)
	})
	const origin = "https://app.example.com"
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		inner.Config.Handler.ServeHTTP(w, r)
	}))
	defer outer.Close()
	early := http.Header{}
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { maps.Copy(early, http.Header(h)); return nil },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, outer.URL, strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(body) != `{}` {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	if len(early) != 0 {
		t.Errorf("ahead of the answer came %v", early)
	}
	if got := resp.Header.Get("Access-Control-Allow-Origin"); got != origin {
		t.Errorf("the header of the guard is %q", got)
	}
}
