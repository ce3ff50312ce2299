package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// asking is an authorization request with long texts in one language.
type asking struct {
	language, client, server string
	scopes                   [5]string // one required, two for reading, one for writing, one dangerous
}

var longest = []asking{
	{"en", "Visual Studio Code Insiders with the Extensions of the Platform Team",
		"Knowledge base of the customer service",
		[5]string{
			"Use the tools of this server in your name", "Read articles, and drafts that were shared with you",
			"Read conversations with customers and their files", "Write articles, and answer customers in your name",
			"Delete articles, conversations and customers for good",
		}},
	{"de", "Visual Studio Code Insiders mit den Erweiterungen der Plattformgruppe",
		"Wissensdatenbank des Kundendienstes",
		[5]string{
			"Die Werkzeuge dieses Servers in Ihrem Namen nutzen", "Artikel und freigegebene Entwürfe anderer lesen",
			"Unterhaltungen mit Kunden und deren Dateien lesen", "Artikel schreiben und Kunden in Ihrem Namen antworten",
			"Artikel, Unterhaltungen und Kunden endgültig löschen",
		}},
	{"ja", "プラットフォームチームの拡張機能を含む開発者向けエディターの最新の試用版",
		"カスタマーサービスのナレッジベース",
		[5]string{
			"このサーバーのツールをあなたの名前で使用する", "記事と、あなたに共有された下書きを読む",
			"顧客との会話とその添付ファイルを読む", "記事を書き、あなたの名前で顧客に返信する",
			"記事、会話、顧客の情報を完全に削除する",
		}},
}

const (
	fiveScopes = "mcp articles:read talks:read articles:write all:delete"
	longServer = "https://knowledge-base.customer-service.example.com/mcp"
	longHost   = "https://automation-gateway.eu-central-1.assistant.example.com/oauth/callback"
	longScheme = "vscode-insiders://anysphere.example-authentication/did-authenticate"
)

// catalogue returns the server's resources for a request.
func (a asking) catalogue() []storage.Resource {
	names := [5]string{"mcp", "articles:read", "talks:read", "articles:write", "all:delete"}
	access := [5]storage.Access{"read", "read", "read", "write", "admin"}
	r := storage.Resource{URI: longServer, Name: a.server}
	for i, text := range a.scopes {
		r.Scopes = append(r.Scopes, storage.ScopeText{
			Name: names[i], Description: text, Access: access[i], Default: true, Required: i == 0, Dangerous: i == 4,
		})
	}
	return []storage.Resource{r}
}

// TestDecisionIsOnTheScreen: PE-11: the decision is visible without scrolling, with everything that
// must be read above it.
func TestDecisionIsOnTheScreen(t *testing.T) {
	t.Parallel()
	for _, a := range longest {
		s := newSite(t, func(c *authserver.Config) { c.Resources = a.catalogue() })
		s.MCPURL = longServer
		s.user("alexandra.mustermann")
		web, desktop := s.registered(a.client, longHost), s.registered(a.client, longScheme)
		few := s.registered(a.client, "")
		for _, l := range looks {
			b := open(t, l)
			b.visit(desktop.link(s.Demo, "redirect_uri", longScheme, "scope", fiveScopes, "ui_locales", a.language))
			b.signIn("alexandra.mustermann", passphrase)
			name := fmt.Sprintf("decision-%s-", a.language)
			b.wantDecision(name + "scheme")
			b.visit(web.link(s.Demo, "redirect_uri", longHost, "scope", fiveScopes, "ui_locales", a.language))
			b.wantDecision(name + "web")
			if l == looks[0] { // the next page then asks only for the difference
				b.visit(few.link(s.Demo, "scope", "mcp articles:read"))
				b.decide("approve")
				few.answer(t, b)
			}
			b.visit(few.link(s.Demo, "scope", fiveScopes, "ui_locales", a.language))
			b.wantDecision(name + "more")
		}
	}
}

// TestProviderDecisionIsOnTheScreen: PE-11: this is also so if the decision comes before a provider
// sign-in.
func TestProviderDecisionIsOnTheScreen(t *testing.T) {
	lane.Long(t, "TestDecisionIsOnTheScreen measures the same page")
	t.Parallel()
	for _, a := range longest {
		s := newSite(t, func(c *authserver.Config) { c.Resources = a.catalogue() },
			thirdparty.Connector{ID: "company", Name: "Example Company Directory", Icon: "keycloak"})
		s.MCPURL = longServer
		web, desktop := s.registered(a.client, longHost), s.registered(a.client, longScheme)
		few := s.registered(a.client, "")
		for _, l := range looks {
			b := open(t, l)
			ask := func(where string, from *app, change ...string) {
				change = append(change, "provider", "company", "scope", fiveScopes, "ui_locales", a.language)
				b.visit(from.link(s.Demo, change...))
				b.wantDecision(fmt.Sprintf("provider-decision-%s-%s", a.language, where))
			}
			ask("scheme", desktop, "redirect_uri", longScheme)
			ask("web", web, "redirect_uri", longHost)
			ask("loopback", few)
		}
	}
}

// wantDecision checks the position of the buttons and the content below them.
func (b *tab) wantDecision(page string) {
	b.TB.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS(".decide")))
	b.picture(page)
	if b.Look == looks[2] {
		b.axeOn(page)
	}
	below := eval[[]string](b, `(() => {
		const bottom = (e) => e.getBoundingClientRect().bottom;
		const buttons = [...document.querySelectorAll('.decide button')];
		const top = Math.min(...buttons.map((e) => e.getBoundingClientRect().top));
		const wrong = buttons.filter((e) => bottom(e) > innerHeight).map((e) => e.value + ' ends at ' + bottom(e) + ' of ' + innerHeight);
		for (const e of document.querySelectorAll('h1, .route, .notice, .abilities, .as'))
			if (bottom(e) > top) wrong.push(e.className + ' is not above the buttons');
		if (scrollY || buttons.length !== 2) wrong.push('scrolled, or without two buttons');
		return wrong;
	})()`)
	if len(below) > 0 {
		b.TB.Errorf("PE-11 %s %s: %v", page, b.Look.Name, below)
	}
}

// PE-12, AS-237: the checkboxes and presets work without script.
func TestChoosingWithoutScript(t *testing.T) {
	lane.Long(t, "authserver tests the choice of scopes")
	t.Parallel()
	s := newSite(t, func(c *authserver.Config) { c.Resources = longest[0].catalogue() })
	s.MCPURL = longServer
	s.user("alice")
	for _, c := range []struct {
		name    string
		presses []string
		want    string
	}{
		{"untick one", []string{`input[value="talks:read"]`}, "mcp articles:read articles:write"},
		{"read only", []string{`input[value="read"]`}, "mcp articles:read talks:read"},
		{"all but dangerous", []string{`input[value="all"]`}, "mcp articles:read talks:read articles:write"},
		{"all, and a dangerous one", []string{`input[value="all"]`, `input[value="all:delete"]`}, fiveScopes},
		{"a dangerous one", []string{`input[value="all:delete"]`}, fiveScopes},
		{"read only, and back", []string{`input[value="read"]`, `input[value="choose"]`},
			"mcp articles:read talks:read articles:write"},
	} {
		a, b := s.registered("Notes", ""), open(t, looks[2])
		b.visit(a.link(s.Demo, "scope", fiveScopes, "prompt", "consent"))
		b.signIn("alice", passphrase)
		b.WithoutScript()
		b.visit(a.link(s.Demo, "scope", fiveScopes, "prompt", "consent"))
		for _, p := range c.presses {
			b.Do(chromedp.WaitVisible(chromedp.CSS(p)), chromedp.Click(chromedp.CSS(p)))
		}
		b.picture("choosing-" + c.name)
		b.Do(chromedp.Click(chromedp.CSS("button[value=approve]")))
		if got := s.redeemed(a, a.answer(t, b))["scope"]; got != c.want {
			t.Errorf("AS-237 %s: got %q, want %q", c.name, got, c.want)
		}
	}
}
