package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"net/http/cookiejar"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// registration is a client that can change its registration (RFC 7592).
type registration struct {
	ID    string `json:"client_id"`
	URI   string `json:"registration_client_uri"`
	Token string `json:"registration_access_token"`
}

func registered(t *testing.T, method, at, token string, body map[string]any) (r registration) {
	t.Helper()
	b, _ := json.Marshal(body)
	req, _ := http.NewRequest(method, at, bytes.NewReader(b))
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(out, &r); err != nil || r.ID == "" {
		t.Fatalf("%s %s: %s %s", method, at, resp.Status, out)
	}
	return r
}

// visitor is a browser that does not follow redirects. Both replicas get its cookies.
type visitor struct {
	t *testing.T
	*http.Client
}

func newVisitor(t *testing.T) *visitor {
	jar, _ := cookiejar.New(nil)
	return &visitor{
		t, &http.Client{
			Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// open returns the redirect target of a page, or "", and the page.
func (b *visitor) open(at string) (to, body string) {
	b.t.Helper()
	resp, err := b.Get(at)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.read(resp)
}

func (b *visitor) read(resp *http.Response) (to, body string) {
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return resp.Header.Get("Location"), string(raw)
}

var decisionForm = regexp.MustCompile(`(?s)<form [^>]*class="decide[^>]*>.*?name="step" value="([^"]+)"`)

// press presses a decision button of a page at one of the replicas.
func (b *visitor) press(replica, body, verdict string) (to, after string) {
	b.t.Helper()
	m := decisionForm.FindStringSubmatch(body)
	if m == nil {
		b.t.Fatalf("no question on the page: %.600s", body)
	}
	resp, err := b.PostForm(replica+"/consent", url.Values{"step": {m[1]}, "decision": {verdict}})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.read(resp)
}

var loginStep = regexp.MustCompile(`name="step" value="([^"]+)"`)

func (b *visitor) signIn(replica, at string) (to, body string) {
	b.t.Helper()
	_, page := b.open(at)
	step := loginStep.FindStringSubmatch(page)
	if step == nil {
		b.t.Fatalf("no form on the page: %.600s", page)
	}
	resp, err := b.PostForm(replica+"/login",
		url.Values{"step": {step[1]}, "username": {"alice"}, "password": {"correct horse battery"}})
	if err != nil {
		b.t.Fatal(err)
	}
	next, page := b.read(resp)
	if next == "" {
		b.t.Fatalf("not signed in: %.600s", page)
	}
	if strings.HasPrefix(next, "/") {
		next = replica + next
	}
	return b.open(next)
}

// TestConsentOverReplicas: after a change at one replica, the other must not use cached data.
// Consent that the operator has removed is requested again (Security H1, H2, M1, L8).
func TestConsentOverReplicas(t *testing.T) {
	const nice, evil = "https://nice.example/cb", "https://evil.example/cb"
	database := pgtest.Start(t).Database(t)
	first, second := nettest.For(t), nettest.For(t)
	issuer := "http://" + first
	config := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	yaml := "issuer: " + issuer + "\ndata_dir: " + t.TempDir() + "\nsecret_key: " + strings.Repeat("k", 40) +
		"\ndatabase: {url: \"" + database + "\"}\n" +
		"resources: [{uri: \"http://127.0.0.1:9/mcp\", name: R, scopes: [{name: mcp, description: use it, default: true}]}]\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(stdin string, args ...string) string {
		t.Helper()
		c := exec.Command(program.Authd(t), append(args, "--config", config)...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	command("correct horse battery", "user", "add", "alice", "--password-stdin")
	startReplica(t, config, first)
	startReplica(t, config, second)
	one, two := "http://"+first, "http://"+second

	request := func(r registration, redirect string) string {
		q := authorizeQuery(t, &demotest.Demo{Issuer: issuer, MCPURL: "http://127.0.0.1:9/mcp"}, r.ID)
		q.Del("redirect_uri")
		if redirect != "" {
			q.Set("redirect_uri", redirect)
		}
		return "/authorize?" + q.Encode()
	}
	change := func(r registration, redirects ...string) {
		registered(t, http.MethodPut, strings.Replace(r.URI, first, second, 1), r.Token,
			map[string]any{"client_id": r.ID, "client_name": "Nice", "redirect_uris": redirects})
	}
	wantQuestion := func(t *testing.T, to, body, host string) {
		t.Helper()
		if to != "" || !strings.Contains(body, `value="approve"`) || !strings.Contains(body, host) {
			t.Fatalf("got a redirect to %q and %.600s; want a question that names %s", to, body, host)
		}
	}
	register := func(redirects ...string) registration {
		return registered(t, http.MethodPost, issuer+"/register", "",
			map[string]any{"client_name": "Nice", "redirect_uris": redirects})
	}

	t.Run("H1 L8 changed at the other replica between page and click", func(t *testing.T) {
		b, r := newVisitor(t), register(nice)
		_, page := b.signIn(one, one+request(r, ""))
		change(r, evil)
		to, page := b.press(one, page, "approve")
		wantQuestion(t, to, page, "evil.example")
		if to, _ = b.press(one, page, "approve"); !strings.HasPrefix(to, evil+"?") {
			t.Errorf("the current page, approved: got %q", to)
		}
	})
	t.Run("L8 the other replica answers the click, by the client as it is now", func(t *testing.T) {
		b, r := newVisitor(t), register(nice)
		_, page := b.signIn(one, one+request(r, ""))
		if to, _ := b.press(two, page, "approve"); !strings.HasPrefix(to, nice+"?") || !strings.Contains(to, "code=") {
			t.Errorf("unchanged: got %q", to)
		}
		r = register(nice)
		_, page = b.open(one + request(r, ""))
		change(r, evil)
		to, page := b.press(two, page, "approve")
		wantQuestion(t, to, page, "evil.example")
		if to, _ = b.press(one, page, "approve"); !strings.HasPrefix(to, evil+"?") {
			t.Errorf("the other's page, approved here: got %q", to)
		}
	})
	t.Run("H2 L8 approved, changed at the other replica: no silent code, here or there", func(t *testing.T) {
		b, r := newVisitor(t), register(nice)
		_, page := b.signIn(one, one+request(r, nice))
		if to, _ := b.press(one, page, "approve"); !strings.HasPrefix(to, nice+"?") {
			t.Fatalf("got %q", to)
		}
		if to, _ := b.open(one + request(r, nice)); !strings.Contains(to, "code=") {
			t.Fatalf("approved, and asked again: %q", to)
		}
		change(r, nice, evil)
		for _, replica := range []string{one, two} {
			to, page := b.open(replica + request(r, nice))
			wantQuestion(t, to, page, "nice.example")
			to, page = b.open(replica + request(r, evil))
			wantQuestion(t, to, page, "evil.example")
		}
	})
	t.Run("a form that is sent to both replicas at once gives one code", func(t *testing.T) {
		b, r := newVisitor(t), register(nice)
		_, page := b.signIn(one, one+request(r, nice))
		to := make(chan string, 32)
		var all sync.WaitGroup
		for i := range cap(to) {
			all.Go(func() {
				at, _ := b.press([]string{one, two}[i%2], page, "approve")
				to <- at
			})
		}
		all.Wait()
		first := <-to
		if !strings.HasPrefix(first, nice+"?") || !strings.Contains(first, "code=") {
			t.Fatalf("got %q", first)
		}
		for range cap(to) - 1 {
			if at := <-to; at != first {
				t.Errorf("got %q and %q", first, at)
			}
		}
	})
	t.Run("M1 grant revoke and user passwd forget the approval on both", func(t *testing.T) {
		b, r := newVisitor(t), register(nice)
		_, page := b.signIn(one, one+request(r, nice))
		b.press(one, page, "approve")
		var grants []struct {
			ID     string `json:"id"`
			Client string `json:"client_id"`
		}
		if err := json.Unmarshal([]byte(command("", "grant", "list", "--client", r.ID, "--json")),
			&grants); err != nil || len(grants) != 1 {
			t.Fatalf("got %v, %v", grants, err)
		}
		command("", "grant", "revoke", grants[0].ID)
		for _, replica := range []string{one, two} {
			to, page := b.open(replica + request(r, nice))
			wantQuestion(t, to, page, "nice.example")
		}
		_, page = b.open(one + request(r, nice))
		b.press(one, page, "approve")
		command("correct horse battery", "user", "passwd", "alice", "--password-stdin")
		to, page := newVisitor(t).signIn(two, two+request(r, nice))
		wantQuestion(t, to, page, "nice.example")
	})
}
