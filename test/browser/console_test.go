package browser

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// console is a demo with some data, and its administrator at the console.
type console struct {
	*demotest.Demo
	*tab
	data     string
	app      *app
	document string // metadata document of another client
}

func newConsole(t *testing.T) *console {
	t.Helper()
	c := &console{data: t.TempDir()}
	c.document = documentSite(t)
	company := fakeidp.Start(t)
	c.Demo = demotest.Start(t, demotest.Options{Args: []string{"--data", c.data}, Env: []string{
		"MCP_AUTHD_REGISTRATION_INSECURE_LOOPBACK_DOCUMENTS=true",
		"MCP_AUTHD_REGISTRATION_DOCUMENTS_ALLOW=claude.ai,*.applications.department.example",
		"MCP_AUTHD_REGISTRATION_DOCUMENTS_DENY=bad.example",
		"MCP_AUTHD_THIRDPARTY_0_ID=company", "MCP_AUTHD_THIRDPARTY_0_TYPE=oidc", "MCP_AUTHD_THIRDPARTY_0_NAME=Company",
		"MCP_AUTHD_THIRDPARTY_0_CLIENT_ID=" + company.ClientID,
		"MCP_AUTHD_THIRDPARTY_0_CLIENT_SECRET=" + company.ClientSecret,
		"MCP_AUTHD_THIRDPARTY_0_ISSUER=" + company.URL, "MCP_AUTHD_THIRDPARTY_0_NETWORKS=127.0.0.0/8",
		"MCP_AUTHD_THIRDPARTY_1_ID=away", "MCP_AUTHD_THIRDPARTY_1_TYPE=oidc", "MCP_AUTHD_THIRDPARTY_1_NAME=Away",
		"MCP_AUTHD_THIRDPARTY_1_CLIENT_ID=x", "MCP_AUTHD_THIRDPARTY_1_CLIENT_SECRET=y",
		"MCP_AUTHD_THIRDPARTY_1_ISSUER=http://127.0.0.1:1", "MCP_AUTHD_THIRDPARTY_1_NETWORKS=127.0.0.0/8",
	}})
	c.tab, c.app = open(t, looks[0]), newApp(t, c.Demo, "Notes for <b>Teams</b> & friends of the Department of "+
		strings.Repeat("Verwaltungsgericht", 2))
	for name, role := range map[string]string{
		"bob": "none", "carol@example.com": "none", "ann": "auditor", "sam": "support",
		"a-rather-long-name-of-a-person.with.several@department.example": "none",
	} {
		c.command(t, passphrase, "user", "add", name, "--role", role, "--password-stdin")
	}
	c.command(t, "", "user", "disable", "carol@example.com")
	c.command(t, "", "user", "invite", "dora", "--mail", "dora@example.com")
	c.command(t, "", "trust", "add", "ci", "--preset", "github-actions", "--set", "repository=o/r", "--set",
		"ref=refs/heads/main", "--resource", c.MCPURL)
	c.visit(c.app.link(c.Demo))
	c.signIn(c.Username, c.Password)
	c.decide("approve")
	c.app.answer(t, c.tab)
	c.fail(t)
	c.replicas(t)
	return c
}

// documentSite serves an application's metadata document and returns its URL.
func documentSite(t *testing.T) (document string) {
	t.Helper()
	mux := http.NewServeMux()
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	document = site.URL + "/applications/notes-for-teams/client.json"
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "{\n  \"client_id\": %q,\n  \"client_name\": \"Notes by document\",\n"+
			"  \"client_uri\": \"https://notes.example/%s\",\n"+
			"  \"redirect_uris\": [\"http://127.0.0.1/callback\"]\n}\n", document, strings.Repeat("long", 40))
	})
	return document
}

// replicas adds other servers to the database: one that runs, and one that was lost.
func (c *console) replicas(t *testing.T) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(c.data, "mcp-authd.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	now := time.Now()
	for _, r := range []storage.Replica{
		{
			ID: "rep_1", Name: "auth-7d9f8b6c5-x2k4q", Version: "0.9.1", Migration: 40, Issuer: c.Issuer,
			Address: "10.1.2.3:8414", StartedAt: now.Add(-50 * time.Hour), SeenAt: now, Skew: 2 * time.Second,
			AuditWaiting: 12,
		},
		{
			ID: "rep_2", Name: "auth-7d9f8b6c5-m9zzt.department.internal.example", Version: "0.9.1", Migration: 40,
			Issuer: c.Issuer, Address: "[2001:db8::17:4]:8414", StartedAt: now.Add(-80 * time.Hour),
			SeenAt: now.Add(-20 * time.Minute), AuditLost: 3,
		},
	} {
		if err := store.SeeReplica(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// changeTool makes an MCP server change the definition of a tool.
func (c *console) changeTool(t *testing.T, uri string) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(c.data, "mcp-authd.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	longer := "Adds a note, and sends it to " + strings.Repeat("Verwaltungsgericht", 4)
	for _, does := range []string{"Adds a note.", longer} {
		text := fmt.Sprintf(`{"description":%q,"inputSchema":{"type":"object"},"name":"add_note"}`, does)
		_, err := store.SeeTools(t.Context(), uri, map[string]storage.ToolDefinition{
			"add_note": {Digest: sha256.Sum256([]byte(text)), Text: text, At: time.Now()},
		}, true)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// command runs a command on the database of the demo.
func (c *console) command(t *testing.T, in string, args ...string) {
	t.Helper()
	cmd := exec.Command(program.Authd(t), append(args, "--data", c.data)...)
	cmd.Stdin = strings.NewReader(in)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// fail causes typical client errors.
func (c *console) fail(t *testing.T) {
	t.Helper()
	for _, link := range []string{
		c.app.link(c.Demo, "redirect_uri", c.app.URL+"/callback/"),
		c.app.link(c.Demo, "resource", c.MCPURL+"/of/another/server"),
		c.app.link(c.Demo, "client_id", "nobody"),
	} {
		resp, err := http.Get(link)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	resp, err := http.PostForm(c.Issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {"of-another-time"}, "client_id": {c.app.id},
		"redirect_uri": {c.app.URL + "/callback"}, "code_verifier": {strings.Repeat("v", 43)},
	})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestConsole checks every console page at phone and desktop sizes, in light and dark (OB-10). Axe
// must find no faults.
func TestConsole(t *testing.T) {
	lane.Long(t, "internal/assembly tests the console of each role")
	t.Parallel()
	c := newConsole(t)
	c.visit(c.Issuer + "/admin/attempt/list?failed=true")
	c.Do(chromedp.Click(chromedp.CSS(".acts button"))) // new rows appear automatically
	c.Until("document.querySelectorAll('table tbody tr').length >= 3")
	const own = "https://notes.department.example/mcp"
	c.command(t, "", "resource", "add", own, "--scope", "notes=read your notes")
	c.changeTool(t, own)
	tool := url.Values{"uri": {own}, "name": {"add_note"}}
	screens := map[string]string{
		"console-overview":    "/admin",
		"console-people":      "/admin/user/list",
		"console-person":      "/admin/user/show?name=" + url.QueryEscape(c.Username),
		"console-invite":      "/admin/user/invite",
		"console-links":       "/admin/user/links",
		"console-delete":      "/admin/user/delete?name=" + url.QueryEscape(c.Username),
		"console-clients":     "/admin/client/list",
		"console-client":      "/admin/client/show?id=" + url.QueryEscape(c.app.id),
		"console-document":    "/admin/client/show?id=" + url.QueryEscape(c.document),
		"console-policy":      "/admin/client/policy",
		"console-found":       "/admin/user/list?match=example",
		"console-notfound":    "/admin/user/list?match=zebra",
		"console-provider":    "/admin/provider/show?id=company",
		"console-away":        "/admin/provider/show?id=away",
		"console-client-add":  "/admin/client/add",
		"console-grants":      "/admin/grant/list",
		"console-attempts":    "/admin/attempt/list",
		"console-nothing":     "/admin/attempt/list?address=192.0.2.1",
		"console-trust":       "/admin/trust/list",
		"console-servers":     "/admin/resource/list",
		"console-server":      "/admin/resource/show?uri=" + url.QueryEscape(c.MCPURL),
		"console-server-add":  "/admin/resource/add",
		"console-tools":       "/admin/resource/tools?" + tool.Encode(),
		"console-tool":        "/admin/resource/tool?" + tool.Encode(),
		"console-tool-accept": "/admin/resource/accept?" + tool.Encode(),
		"console-server-set":  "/admin/resource/set?uri=" + url.QueryEscape(own),
		"console-mail-test":   "/admin/mail/test",
		"console-audit":       "/admin/audit/list",
		"console-entry":       "/admin/audit/show?index=3",
		"console-proof":       "/admin/audit/prove?index=3",
		"console-sinks":       "/admin/audit/sinks",
		"console-checkpoint":  "/admin/audit/checkpoint",
		"console-keys":        "/admin/keys/list",
		"console-health":      "/admin/health/show",
		"console-token":       "/admin/token/inspect",
		"console-providers":   "/admin/provider/list",
		"console-receivers":   "/admin/events/list",
		"console-missing":     "/admin/user/show?name=nobody",
		"console-unknownpage": "/admin/nothing/here",
	}
	for _, id := range []string{"company", "away"} { // request them, so that the list has the time
		c.visit(c.Issuer + "/admin/provider/show?id=" + id)
	}
	for page, path := range screens {
		t.Run("OB-10: "+page, func(t *testing.T) {
			b := c.in(t)
			if page == "console-health" {
				c.replicas(t) // updates the time when they were seen
			}
			b.visit(c.Issuer + path)
			b.show(page)
		})
	}
	t.Run("OB-01 OB-10: console-attempt", func(t *testing.T) {
		b := c.in(t)
		b.visit(c.Issuer + "/admin/attempt/list?failed=true")
		b.Until("[...document.querySelectorAll('tbody tr')].some((e) => e.innerText.includes('redirect'))")
		b.Do(chromedp.Evaluate[chromedp.Void](
			"void ([...document.querySelectorAll('tbody tr')].find((e) => e.innerText.includes('redirect')).id = 'it')"))
		b.click("#it td a")
		b.Until("document.querySelector('.differ mark, .differ em') !== null")
		b.show("console-attempt")
	})
}

// TestConsoleWithoutScript checks the console in a browser without script. An action is confirmed
// and then executed. Each role sees only the pages that it may use (OB-10).
func TestConsoleWithoutScript(t *testing.T) {
	lane.Long(t, "internal/assembly tests the forms of the console")
	t.Parallel()
	c := newConsole(t)
	b := c.tab
	b.Dress(looks[2])
	b.WithoutScript()
	b.visit(c.Issuer + "/admin/user/show?name=bob")
	b.click(".acts a[href*='/disable']")
	b.Until("location.pathname.endsWith('/user/disable') && !!document.querySelector('main form')")
	b.click("main form button")
	b.Until("document.querySelector('[role=status]')?.innerText.includes('bob')")
	b.Until("[...document.querySelectorAll('.badge')].some((e) => e.innerText === 'disabled')")
	b.click(".acts a[href*='/enable']")
	b.click("main form button")
	b.Until("![...document.querySelectorAll('.badge')].some((e) => e.innerText === 'disabled')")
	b.Do(chromedp.WaitVisible(chromedp.CSS("[role=status]")))
	b.visit(c.Issuer + "/admin/attempt/list")
	b.Do(chromedp.WaitVisible(chromedp.CSS("a[data-follow]"))) // an ordinary link
	b.click("a[data-follow]")

	for name, walk := range map[string]struct{ sees, lacks []string }{
		"sam": {
			[]string{"Users", "Attempts"},
			[]string{
				"Health", "Identity providers", "Clients", "Grants", "Audit log", "Trusted issuers", "Signing keys",
				"MCP servers",
			},
		},
		"ann": {
			[]string{
				"Users", "Clients", "Grants", "Attempts", "Audit log", "MCP servers", "Trusted issuers", "Signing keys",
				"Health", "Identity providers",
			}, nil,
		},
	} {
		t.Run("OB-10: a walk of "+name, func(t *testing.T) {
			b := b.in(t)
			b.forget()
			b.visit(c.Issuer + "/admin")
			b.signIn(name, passphrase)
			for _, link := range walk.sees {
				b.visit(c.Issuer + "/admin")
				b.Do(chromedp.Click(chromedp.CSS(".menu summary")))
				b.click(".menu nav a[href*='/" + rooms[link] + "']")
				b.Until("document.querySelector('h1 bdi').innerText === '" + link + "'")
				b.Until("!document.querySelector('[role=alert]')")
			}
			for _, link := range walk.lacks {
				b.Until("!document.querySelector('nav a[href*=\"/" + rooms[link] + "\"]')")
				b.visit(c.Issuer + "/admin/" + rooms[link])
				b.Until("document.querySelector('[role=alert]')?.innerText.includes('may not')")
			}
			b.visit(c.Issuer + "/admin/user/show?name=bob")
			for act, role := range map[string]string{
				"delete": "sam", "recover": "sam", "set-role": "", "disable": "sam",
			} {
				found := "(document.querySelector('main a[href*=\"/user/" + act + "?\"]') !== null)"
				if role != name {
					found = "!" + found
				}
				b.Until(found)
			}
		})
	}
}

// rooms maps menu entries to their pages.
var rooms = map[string]string{
	"Users": "user/list", "Clients": "client/list", "Grants": "grant/list", "Attempts": "attempt/list",
	"Audit log": "audit/list", "MCP servers": "resource/list", "Trusted issuers": "trust/list",
	"Signing keys": "keys/list", "Health": "health/show", "Identity providers": "provider/list",
}
