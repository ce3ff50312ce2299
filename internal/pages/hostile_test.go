package pages

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
)

// hostile lists texts that a client may send as its name or as an address.
var hostile = map[string]string{
	"script":       `<script>alert(1)</script>`,
	"double quote": `" autofocus onfocus="alert(1)`,
	"single quote": `' onmouseover='alert(1)`,
	"tag":          `</bdi></strong></dd></dl></main><h1>Approved</h1>`,
	"comment":      `<!--`,
	"template":     `{{.Step}}`,
	"override":     "safe\u202Efdp.exe\u2066x\u200B\u200F\uFEFF",
	"control":      "a\x00b\x1b[31m\r\nSet-Cookie: x=y\u2028\u0085",
	"not UTF-8":    "a\xff\xfe<b",
	"marks":        "Z" + strings.Repeat("\u0335\u0489", 200),
	"tags":         "\U000E0041\U000E0042",
	"javascript":   "javascript:alert(1)",
	"5 kB":         strings.Repeat("<b>W", 1280),
}

// hostilePages returns all pages with evil in every field that anyone except the administrator can
// influence.
func hostilePages(evil string) []sample {
	party := Party{Name: evil, Host: evil, URL: evil}
	request := Request{
		Client: party, SelfRegistered: true, RedirectHost: evil, RedirectURI: evil, Resource: party,
		Permissions: Permissions{
			Scopes:  []Scope{{Name: evil, Description: evil, Dangerous: true}, {Name: evil}, {Name: evil, Fixed: true}},
			Allowed: []Scope{{Name: evil, Description: evil}},
			Choice:  true, ReadOnly: true,
		},
	}
	provider := Provider{evil, evil, evil}
	told := Told(sentence.New(evil, ""))
	// a page of this server, with the client's request
	ours := "/authorize?" + url.QueryEscape(evil[:min(len(evil), 100)])
	choices := []Choice{{Provider: provider, URL: ours}, {Provider: provider, Action: "/depart", Step: evil}}
	return []sample{
		{"login", func(p *Pages, w http.ResponseWriter) {
			p.Login(w, 200,
				Login{Action: "/login", Step: evil, Username: evil, Problem: Given(evil), EndNotice: told,
					Choices: choices, Client: party, Resource: party,
					Earlier: []Passkey{{Action: "/login/passkey", Step: evil, Host: evil}}})
		}},
		{"consent", func(p *Pages, w http.ResponseWriter) {
			p.Consent(w, 200,
				Consent{Action: "/consent", Step: evil, Request: request, Username: evil, AnotherURL: ours})
		}},
		{"remoteask", func(p *Pages, w http.ResponseWriter) {
			p.RemoteAsk(w, 200, RemoteAsk{
				Action: "/device/sign-in", Step: evil, Code: "4DJB-MJHT", Agent: Given(evil), Address: evil,
				Username: evil, SignOutAction: "/logout", SignOutStep: evil,
			})
		}},
		{"chooser", func(p *Pages, w http.ResponseWriter) {
			p.Chooser(w, Chooser{
				Action: "/choose", Client: party, Resource: party, Accounts: []Signed{{evil, evil}}, AnotherURL: ours,
			})
		}},
		{"confirm", func(p *Pages, w http.ResponseWriter) {
			p.Confirm(w, Confirm{Action: "/consent", Step: evil, Request: request, Username: evil, Provider: provider,
				Label: evil, AnotherURL: ours})
		}},
		{"paused", func(p *Pages, w http.ResponseWriter) {
			p.Paused(w, Paused{Action: "/paused", Step: evil, Request: request, Username: evil})
		}},
		{"providerconsent", func(p *Pages, w http.ResponseWriter) {
			p.ProviderConsent(w, 200,
				ProviderConsent{Action: "/consent", Step: evil, Request: request, Provider: provider, OtherURL: ours,
					EndNotice: told})
		}},
		{"providerconsent unread", func(p *Pages, w http.ResponseWriter) {
			p.ProviderConsent(w, 200,
				ProviderConsent{Action: "/consent", Step: evil, Request: request, Unread: true, Provider: provider})
		}},
		{"failed", func(p *Pages, w http.ResponseWriter) {
			p.Failed(w, 400, Failed{
				Message: told, Code: evil, RequestID: evil, Provider: provider, Came: evil, Expected: evil,
				Client: party, RetryURL: ours, ReturnURL: evil, ReturnIsCustomScheme: true,
			})
		}},
		{"claim", func(p *Pages, w http.ResponseWriter) {
			p.Claim(w, Claim{
				Action: "/claim", Step: evil, Provider: provider, Label: evil, Subject: evil, Username: evil,
			})
		}},
		{"connect", func(p *Pages, w http.ResponseWriter) {
			p.Connect(w,
				Connect{Action: "/connect/x", Step: evil, Resource: party, Provider: provider, Scopes: []string{evil},
					Username: evil, SignOutAction: "/logout", SignOutStep: evil})
		}},
		{"connected", func(p *Pages, w http.ResponseWriter) { p.Connected(w, Connected{provider, party, true}) }},
		{"error", func(p *Pages, w http.ResponseWriter) {
			p.Error(w, 400, Error{
				Title: Given(evil), Message: told, Client: evil, Advice: Given(evil), Code: evil, RequestID: evil,
			})
		}},
		{"stopped", func(p *Pages, w http.ResponseWriter) {
			p.Stopped(w, 400,
				Stopped{Message: told, Code: evil, Client: party, RedirectHost: evil, ReturnURL: evil})
		}},
		{"handoff", func(p *Pages, w http.ResponseWriter) {
			p.Handoff(w, Handoff{Client: party, URL: evil, Scheme: evil})
		}},
		{"setup", func(p *Pages, w http.ResponseWriter) {
			p.Setup(w, 200, Setup{"/setup", evil, evil, Given(evil), evil})
		}},
		{"setupdone", func(p *Pages, w http.ResponseWriter) {
			p.SetupDone(w, SetupDone{Username: evil, Issuer: evil})
		}},
		{"account", func(p *Pages, w http.ResponseWriter) {
			who, form := Say("account.agent", "browser", evil, "system", evil), AccountForm{"/account", evil}
			ways := Ways{
				Action: "/account/ways", List: []Way{{ID: "way_1", Name: evil, Step: evil, Elsewhere: evil}},
				Accounts: []Account{{ID: "acc_1", Provider: provider, Label: evil, Action: "/disconnect", Step: evil}},
				Connect:  choices,
			}
			p.Account(w, 200, AccountPage{
				Done: Given(evil), Problem: Given(evil), HomeURL: "/", Stop: form,
				News: Notices{Notices: []Notice{
					{What: NoticeText("way-added"), Name: evil},
					{What: NoticeText("account-connected"), Detail: Given(evil)},
				}},
				You: AccountYou{Username: evil, Ways: ways, SignOut: form},
				Apps: AccountApps{AccountForm: form, NextURL: "/account", MorePausedURL: "/account",
					Paused: []PausedApp{{ID: "pau_1", Client: party, Server: party}}, Apps: []ConnectedApp{{
						ID: "grt_1", Client: party, SelfRegistered: true, Several: true, Connections: 2,
						Servers: []ConnectedServer{{
							ID: "grt_1", Client: party, Server: party,
							Scopes: []Scope{{Name: evil, Description: evil}}, Username: evil,
							Account: Account{ID: "acc_1", Provider: provider, Label: evil},
							Given:   Event{Agent: who, From: evil}, Used: Event{Agent: who, From: evil},
							LastCall: Call{Tool: evil, At: time.Unix(0, 0)}, Handed: Handed{1, "/account"},
						}},
					}, {
						ID: "grt_3", Client: party, Servers: []ConnectedServer{{
							ID: "grt_3", Server: party, By: Organization{Entry: evil, Host: evil},
						}},
					}}},
				Keys: AccountKeys{AccountForm: form, MakeURL: "/account/keys", Keys: []ProgramKey{{
					ID: "grt_2", Name: evil, ClientID: evil, Server: party,
					Scopes: []Scope{{Name: evil, Description: evil}},
					Made:   Event{Agent: who, From: evil}, Used: Event{Agent: who, From: evil},
					LastCall: Call{Tool: evil, At: time.Unix(0, 0)},
				}}},
				SignIns: AccountSignIns{AccountForm: form, SignIns: []SignIn{{ID: "ses_1", Agent: who, From: evil}}},
			})
		}},
		{"helpers", func(p *Pages, w http.ResponseWriter) {
			one := Helper{ID: "nod_1", Name: evil, Scopes: []Scope{{Name: evil, Description: evil}}}
			two := one
			two.Below = []Helper{one}
			p.Helpers(w, Helpers{
				AccountForm: AccountForm{"/account", evil}, Done: Given(evil), GrantID: "grt_1", Client: party,
				Server: party, Helpers: []Helper{one, two}, BackURL: "/account",
			})
		}},
		{"makekey", func(p *Pages, w http.ResponseWriter) {
			p.MakeKey(w, 400, MakeKey{
				Action: "/account/keys", Step: evil, Problem: Given(evil), Name: evil, Server: party, BackURL: "/",
				Scopes: []Scope{{Name: evil, Description: evil}}, Days: []DayChoice{{Days: 1}},
			})
		}},
		{"keymade", func(p *Pages, w http.ResponseWriter) {
			p.KeyMade(w, KeyMade{
				Name: evil, Server: party, Scopes: []Scope{{Name: evil, Description: evil}},
				ClientID: evil, Secret: evil, TokenURL: evil, Command: "all of it is ours", BackURL: "/account",
			})
		}},
		{"home", func(p *Pages, w http.ResponseWriter) {
			p.Home(w, Home{
				Username: evil, Issuer: evil, Resources: []Party{party}, EndNotice: told, SignIn: choices,
				AccountURL: "/account", SignOutAction: "/logout", Step: evil})
		}},
	}
}

var (
	openingTag = regexp.MustCompile(`<([a-z0-9]+)`)
	fieldValue = regexp.MustCompile(` value="[^"]*"`) // inputs contain the typed text unchanged
)

func TestHostileText(t *testing.T) {
	p := newPages(t, Config{})
	harmless := hostilePages("harmless")
	for name, evil := range hostile {
		for i, page := range hostilePages(evil) {
			t.Run("AS-48 OAuth 2.1 7.11: "+page.name+" with "+name+" is inert", func(t *testing.T) {
				body := record(p, page.show).Body.String()
				if evil != "javascript:alert(1)" && strings.ContainsAny(evil, "<\"'") && strings.Contains(body, evil) {
					t.Error("the text stands unescaped in the page")
				}
				assertElements(t, body, record(p, harmless[i].show).Body.String())
				shown := fieldValue.ReplaceAllString(body, "")
				if bad := strings.IndexFunc(strings.ReplaceAll(shown, "\n", ""), label.Invisible); bad >= 0 {
					t.Errorf("an invisible character is shown: %.40q", strings.ReplaceAll(shown, "\n", "")[bad:])
				}
				plain := record(p, harmless[i].show).Body.String()
				limit := len(plain) + 1000*strings.Count(plain, "harmless") // for each name
				if strings.Contains(shown, strings.Repeat("\u0335", 3)) || len(shown) > limit {
					t.Errorf("the text is not limited: %d bytes, want at most %d", len(shown), limit)
				}
			})
		}
	}
}

// assertElements compares the elements of two pages: untrusted text must add none. A text of only
// invisible characters may remove some.
func assertElements(t *testing.T, body, want string) {
	t.Helper()
	count := func(s string) map[string]int {
		m := make(map[string]int)
		for _, tag := range openingTag.FindAllStringSubmatch(s, -1) {
			m[tag[1]]++
		}
		return m
	}
	wanted := count(want)
	wanted["a"]++ // a harmless word is not an address; links are checked below
	wanted["span"]++
	wanted["div"]++ // the link, or the explanation why it is missing
	wanted["p"]++
	for tag, n := range count(body) {
		if n > wanted[tag] {
			t.Errorf("got %d <%s>, want %d", n, tag, wanted[tag])
		}
	}
}

func TestLink(t *testing.T) {
	p := newPages(t, Config{})
	live := func(target string) bool {
		a := record(p,
			func(p *Pages, w http.ResponseWriter) { p.Stopped(w, 400, Stopped{ReturnURL: target}) }).Body.String()
		b := record(p, func(p *Pages, w http.ResponseWriter) { p.Handoff(w, Handoff{URL: target}) })
		d := record(p, func(p *Pages, w http.ResponseWriter) { p.Failed(w, 400, Failed{ReturnURL: target}) })
		is := strings.Contains(a, `class="button"`)
		for _, other := range []bool{
			strings.Contains(b.Body.String(), `class="button primary wide"`),
			strings.Contains(d.Body.String(), `class="button"`),
			b.Header().Get("Refresh") == "0; url="+target,
		} {
			if is != other {
				t.Errorf("the pages disagree about %q", target)
			}
		}
		if d.Header().Get("Refresh") != "" {
			t.Errorf("a failure goes away by itself, to %q", target)
		}
		return strings.Contains(a, "<a ")
	}
	for _, target := range []string{
		"javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)",
		"\x01javascript:alert(1)",
		"data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd", "blob:https://x/y",
		"about:blank",
		"view-source:https://x", "filesystem:https://x", "//evil.example", "/relative", "", "https:", "http:///x",
		"https://x/ y", "https://x/\u202E",
		"intent://x#Intent;end", "ms-msdt:/id",
	} {
		t.Run("AS-48 AS-60: "+target+" is never a live link", func(t *testing.T) {
			if live(target) {
				t.Errorf("%q is a link", target)
			}
		})
	}
	for _, target := range []string{
		"https://claude.ai/cb?error=access_denied&state=a%20b", "http://127.0.0.1:33418/?code=x", "http://[::1]:1/",
		"cursor://x.y/cb?code=1&iss=z",
		"com.example.app:/cb?code=1", "vscode://vscode.github-authentication/did-authenticate?a=b",
	} {
		t.Run("AS-60: "+target+" leads back", func(t *testing.T) {
			if !live(target) {
				t.Errorf("%q must be a link", target)
			}
		})
	}
}

// OB-11: a multi-line text keeps its indentation, within limits, and contains no misleading
// characters.
func TestCleanLines(t *testing.T) {
	got := cleanLines("{\n  \"a\":  1,\n\t\"b\u202e\": 2\n" + strings.Repeat(" ", 99) + "}\n\n")
	if want := "{\n  \"a\": 1,\n    \"b\": 2\n" + strings.Repeat(" ", maxIndent) + "}"; got != want {
		t.Errorf("OB-11: got %q, want %q", got, want)
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text stays", "Claude Code (my laptop) é 日本 ✓", "Claude Code (my laptop) é 日本 ✓"},
		{"white space becomes one space", " a\t\n\u00a0\u3000 b ", "a b"},
		{"blank letters are spaces", "\u3164\u2800a\uFFA0b", "a b"},
		{"bidirectional controls go", "a\u202Eb\u2067c\u200Fd", "abcd"},
		{"nothing visible is no name", "\u200b\u3164\u0301\x00", ""},
		{"marks are limited", "e\u0301\u0301\u0301\u0301x", "e\u0301\u0301x"},
		{"a long name ends in an ellipsis", strings.Repeat("é", 81), strings.Repeat("é", 79) + "…"},
		{"80 characters fit", strings.Repeat("é", 80), strings.Repeat("é", 80)},
	} {
		t.Run("AS-48: "+c.name, func(t *testing.T) {
			if got := cleanName(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzClientName(f *testing.F) {
	for _, evil := range hostile {
		f.Add(evil)
	}
	p := newPages(f, Config{})
	f.Fuzz(func(t *testing.T, name string) {
		shown := cleanName(name)
		if utf8.RuneCountInString(shown) > maxName || !utf8.ValidString(shown) ||
			strings.ContainsFunc(shown, label.Invisible) {
			t.Errorf("cleanName(%q) = %q", name, shown)
		}
		if again := cleanName(shown); again != shown {
			t.Errorf("cleaning again changes %q to %q", shown, again)
		}
		body := record(p, sampleConsent().with(func(c *Consent) { c.Client.Name = name })).Body.String()
		if strings.Count(body, "<strong") > 5 || strings.Count(body, "<button") != 2 ||
			strings.Count(body, "<") != strings.Count(body, ">") {
			t.Errorf("the name %q changes the page", name)
		}
	})
}

// Security L10: a client's name is shown in quotation marks. It contains none, so it cannot end the
// quotation and continue as text of the server.
func TestNamesCannotEndTheirQuotation(t *testing.T) {
	p := newPages(t, Config{})
	for _, tt := range []struct{ name, want string }{
		{"Claude” — verified by your company “", "Claude — verified by your company"},
		{`Claude" verified "`, "Claude verified"},
		{"Claude’ verified ‘", "Claude verified"},
		{"»Claude« „x‟ 「y」 ﹁z﹂ ＂w＂ ‹v› 〝u〞", "Claude x y z w v u"},
		{"Claude″ `x´ ʺyˮ", "Claude x y"},
		{"Claude\u202e\u2066\x00\u200b", "Claude"},
		{"Bob's Notes", "Bob&#39;s Notes"},
		{"L’appli", "L’appli"},
		{"“”", ""},
	} {
		body := record(p, func(p *Pages, w http.ResponseWriter) {
			p.Consent(w, 200, Consent{Request: Request{Client: Party{Name: tt.name, URL: "https://c.example"}}})
		}).Body.String()
		want := "“<strong><bdi>" + tt.want + "</bdi></strong>”"
		if tt.want == "" {
			want = "An application wants to use"
		}
		if !strings.Contains(body, want) {
			t.Errorf("%q: no %q in the page", tt.name, want)
		}
	}
}

// PE-04: a name in a notice that an application or a thief may have chosen is quoted and marked as
// unverified.
func TestNamesInNoticesAreQuoted(t *testing.T) {
	p := newPages(t, Config{})
	body := record(p, func(p *Pages, w http.ResponseWriter) {
		p.Notices(w, Notices{Notices: []Notice{{What: NoticeText("connection-resumed"), Name: "Nothing” to do"}}})
	}).Body.String()
	const want = `<strong class="claimed">“<bdi>Nothing to do</bdi>”</strong>` +
		` <span class="address">This name has not been verified.</span>`
	if !strings.Contains(body, want) {
		t.Errorf("no %s in %s", want, body)
	}
}

// PE-09: the name of a called tool is in quotation marks, and too short for a sentence.
func TestToolNamesAreQuoted(t *testing.T) {
	p := newPages(t, Config{})
	for tool, want := range map[string]string{
		"search_notes": "search_notes",
		"Your_account_was_locked.Open_evil.example_or_call_555_0100": "Your_account_was_locked.Open_evil.examp…",
	} {
		body := record(p, func(p *Pages, w http.ResponseWriter) {
			p.Account(w, 200, AccountPage{Apps: AccountApps{Apps: []ConnectedApp{{
				ID: "grt_1", Servers: []ConnectedServer{{ID: "grt_1", LastCall: Call{Tool: tool, At: sampleTime}}},
			}}}})
		}).Body.String()
		if want = "“<bdi>" + want + "</bdi>”, "; !strings.Contains(body, want) {
			t.Errorf("%s: no %s in the page", tool, want)
		}
	}
}
