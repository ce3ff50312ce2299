package e2e

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// shownOnce returns the text under an id on the page that shows a key.
func shownOnce(t *testing.T, body, id string) string {
	t.Helper()
	m := regexp.MustCompile(`<(?:code|textarea) id="` + id + `"[^>]*>([^<]*)<`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no %s in %.2000s", id, body)
	}
	return html.UnescapeString(m[1])
}

// submit fills in and posts the first form of a page.
func (b *visitor) submit(to, page string, form url.Values) (next, body string) {
	b.t.Helper()
	step := loginStep.FindStringSubmatch(page)
	if step == nil {
		b.t.Fatalf("no form on the page: %.600s", page)
	}
	form.Set("step", step[1])
	resp, err := b.PostForm(to, form)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.read(resp)
}

// TestProgramKey: PE-17, from the account page to the MCP server and back.
func TestProgramKey(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	b := newVisitor(t)
	_, page := b.open(d.Issuer + "/login")
	b.submit(d.Issuer+"/login", page, url.Values{"username": {d.Username}, "password": {d.Password}})
	_, body := b.open(d.Issuer + "/account/keys")
	_, body = b.submit(d.Issuer+"/account/keys", body, url.Values{"name": {"Robot"}, "days": {"1"}, "scope": {"mcp"}})
	var got struct {
		Token string `json:"access_token"`
		Scope string `json:"scope"`
	}
	t.Run("PE-17 the command on the page gets a token", func(t *testing.T) {
		if _, err := exec.LookPath("curl"); err != nil {
			t.Skip("there is no curl here")
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", shownOnce(t, body, "command")).Output()
		if err != nil || json.Unmarshal(out, &got) != nil || got.Scope != "mcp" {
			t.Fatalf("%v: %s", err, out)
		}
	})
	_, token := post(t, shownOnce(t, body, "token_endpoint"), url.Values{
		"grant_type": {"client_credentials"}, "client_id": {shownOnce(t, body, "client_id")},
		"client_secret": {shownOnce(t, body, "client_secret")}, "resource": {d.MCPURL},
	})
	t.Run("PE-17 with which it calls a tool", func(t *testing.T) {
		if status := callWhoami(t, d, token["access_token"]); status != http.StatusOK {
			t.Errorf("got %d, want 200", status)
		}
	})
	stream := streaming(t, d, token["access_token"].(string))
	_, account := b.open(d.Issuer + "/account")
	grant := regexp.MustCompile(`data-grant="([^"]+)"`).FindStringSubmatch(account)
	if grant == nil {
		t.Fatalf("no key in %.2000s", account)
	}
	section := account[strings.Index(account, `id="keys"`):]
	b.submit(d.Issuer+"/account/connections", section, url.Values{"grant": {grant[1]}, "act": {"disconnect"}})
	t.Run("PE-17 its end on the account page ends an open stream", func(t *testing.T) {
		select {
		case <-stream:
		case <-time.After(time.Minute):
			t.Error("the stream outlives its key")
		}
	})
	t.Run("PE-17 and its tokens", func(t *testing.T) {
		if status := callWhoami(t, d, token["access_token"]); status != http.StatusUnauthorized {
			t.Errorf("got %d, want 401", status)
		}
	})
}

// streaming opens a session at the MCP server and its stream. The returned channel is closed when
// the stream ends.
func streaming(t *testing.T, d *demotest.Demo, token string) <-chan struct{} {
	t.Helper()
	ask := func(method, body, session string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, d.MCPURL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2025-11-25", "Authorization": "Bearer " + token, "Mcp-Session-Id": session,
		} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		if method == http.MethodGet {
			req.Header.Set("Accept", "text/event-stream")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	begun := ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"robot","version":"1"}}}`, "")
	io.Copy(io.Discard, begun.Body)
	begun.Body.Close()
	session := begun.Header.Get("Mcp-Session-Id")
	ask(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session).Body.Close()
	stream := ask(http.MethodGet, "", session)
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("no stream: %s", stream.Status)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer stream.Body.Close()
		io.Copy(io.Discard, stream.Body)
	}()
	return ended
}
