package pages

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
)

// sample is one page in one state.
type sample struct {
	name string
	show func(p *Pages, w http.ResponseWriter)
}

var (
	claude = Party{Name: "Claude", URL: "mcp_kD93jfkw0d"}
	notes  = Party{Name: "Team notes", Host: "notes.example.com", URL: "https://notes.example.com/mcp"}
)

func sampleConsent() Consent {
	return Consent{
		Action: "/consent", Step: "sealed-step", Request: sampleRequest(),
		Username: "alice", AnotherURL: "/authorize?client_id=x&prompt=select_account",
	}
}

func sampleRequest() Request {
	return Request{
		Client: claude, SelfRegistered: true,
		RedirectHost: "claude.ai", RedirectURI: "https://claude.ai/api/mcp/auth_callback", Resource: notes,
		Permissions: Permissions{
			Choice: true,
			Scopes: []Scope{
				{Name: "mcp", Description: "Use the tools of this server", Checked: true},
				{Name: "notes:read", Description: "Read your notes", Checked: true},
			},
		},
		StaySignedIn: true,
	}
}

func (c Consent) with(change func(*Consent)) func(*Pages, http.ResponseWriter) {
	change(&c)
	return func(p *Pages, w http.ResponseWriter) { p.Consent(w, http.StatusOK, c) }
}

var (
	google  = Provider{Name: "Google", Icon: "google", Host: "accounts.google.com"}
	company = Provider{Name: "Example Company Directory", Host: "login.example.com"}
)

func sampleProviderConsent() ProviderConsent {
	return ProviderConsent{
		Action: "/consent", Step: "sealed-step", Request: sampleRequest(), Provider: google,
		OtherURL: "/authorize?client_id=x&provider=*",
	}
}

func (d ProviderConsent) with(change func(*ProviderConsent)) func(*Pages, http.ResponseWriter) {
	change(&d)
	return func(p *Pages, w http.ResponseWriter) { p.ProviderConsent(w, http.StatusOK, d) }
}

// sampleChoices returns every icon, as links or as forms.
func sampleChoices(step string) (out []Choice) {
	for _, name := range []string{
		"Google", "GitHub", "GitLab", "Microsoft", "Okta", "Auth0", "Keycloak", "Slack", "Discord", "Apple", "Company",
	} {
		out = append(out, Choice{
			Provider: Provider{Name: name, Icon: strings.ToLower(name), Host: "idp.example.com"},
			URL:      "/authorize?client_id=x&provider=" + strings.ToLower(name), Action: "/depart", Step: step,
		})
	}
	return out
}

// samples returns all pages in every visually different state.
func samples() []sample {
	login := Login{
		Action: "/login", Step: "sealed-step", Client: claude, Resource: notes,
	}
	failed := login
	failed.Username, failed.Problem = "alice", Say("login.wrong")
	stopped := Stopped{
		Message: Told(sentence.New("The application asked for a permission that this server does not have.", "")), Code: "invalid_scope",
		RequestID: "0192f3c1a7",
		Advice:    Say("stopped.tell_makers"),
		Client:    claude, RedirectHost: "claude.ai",
		ReturnURL: "https://claude.ai/api/mcp/auth_callback?error=invalid_scope",
	}
	setup := Setup{Action: "/setup", Step: "sealed-step"}
	setupFailed := Setup{
		Action: "/setup", Step: "sealed-step", Username: "alice", Problem: Say("setup.short_password"),
		Token: "tok",
	}
	long := strings.Repeat("Averylongnamewithoutanyspace", 20)
	return append(slices.Concat(delegated(), waySamples(), keySamples(), clearanceSamples()), []sample{
		{"login", func(p *Pages, w http.ResponseWriter) { p.Login(w, 200, login) }},
		{"login-own",
			func(p *Pages, w http.ResponseWriter) { p.Login(w, 200, Login{Action: "/login", Step: "sealed-step"}) }},
		{"login-unread", func(p *Pages, w http.ResponseWriter) {
			p.Login(w, 200,
				Login{Action: "/login", Step: "sealed-step",
					Client:   Party{Host: "app.example.com", URL: "https://app.example.com/client.json"},
					Resource: notes})
		}},
		{"login-problem", func(p *Pages, w http.ResponseWriter) { p.Login(w, 401, failed) }},
		{"consent", sampleConsent().with(func(*Consent) {})},
		{"consent-loopback", sampleConsent().with(func(c *Consent) {
			c.Client.Name, c.RedirectHost, c.RedirectIsLoopback = "Visual Studio Code", "127.0.0.1:33418", true
			c.RedirectURI, c.StaySignedIn = "http://127.0.0.1:33418/", false
		})},
		{"consent-scheme", sampleConsent().with(func(c *Consent) {
			c.Client.Name, c.RedirectHost, c.RedirectURI = "Cursor", "cursor:",
				"cursor://anysphere.cursor-mcp/oauth/callback"
		})},
		{"consent-more", sampleConsent().with(func(c *Consent) {
			c.SelfRegistered, c.Client.Host = false, "claude.ai"
			c.Allowed = c.Scopes
			c.Scopes = []Scope{{Name: "notes:write", Description: "Add and change notes", Checked: true}}
		})},
		{"consent-dangerous", sampleConsent().with(func(c *Consent) {
			c.Scopes = []Scope{
				{Name: "mcp", Description: "Use the tools of this server", Fixed: true, Checked: true},
				{Name: "notes:read", Description: "Read your notes", Checked: true, Read: true},
				{Name: "notes:delete", Description: "Delete notes for good", Dangerous: true},
			}
			c.ReadOnly, c.Risky, c.NothingChosen = true, true, true
		})},
		{"consent-bare", sampleConsent().with(func(c *Consent) {
			c.Client, c.Permissions, c.StaySignedIn = Party{}, Permissions{}, false
			c.Resource.Name, c.AnotherURL = "", ""
		})},
		{"consent-long", sampleConsent().with(func(c *Consent) {
			c.Client.Name, c.Username, c.Resource.Name, c.RedirectHost = long, long, long, long+".example"
			c.Resource.URL, c.RedirectURI = "https://"+long, "https://"+long
			c.Scopes = []Scope{{Name: long, Description: long, Dangerous: true}}
		})},
		{"error", func(p *Pages, w http.ResponseWriter) {
			p.Error(w, 400, Error{
				Title: Say("error.unknown_title"), Message: Told(sentence.New("No client has this id.", "")),
				Client: "Claude Code",
				Code:   "invalid_client", RequestID: "0192f3c1a7",
				Advice: Say("error.unknown_advice"),
			})
		}},
		{"error-empty", func(p *Pages, w http.ResponseWriter) { p.Error(w, 500, Error{}) }},
		{"stopped", func(p *Pages, w http.ResponseWriter) { p.Stopped(w, 400, stopped) }},
		{"handoff", func(p *Pages, w http.ResponseWriter) {
			p.Handoff(w,
				Handoff{Client: Party{Name: "Cursor"}, URL: "cursor://anysphere.cursor-mcp/oauth/callback?code=c",
					Scheme: "cursor:"})
		}},
		{"answer", func(p *Pages, w http.ResponseWriter) {
			p.Answer(w, Answer{
				Client: Party{Name: "Claude Code"}, Seconds: 60,
				QR:  QR{Path: "M4 4h7v1h-7z", Size: 29, Label: Say("answer.qr_label")},
				URL: "http://localhost:33418/callback?code=mcpac_1&iss=https%3A%2F%2Fauth.example.com&state=s",
			})
		}},
		{"devicecode", func(p *Pages, w http.ResponseWriter) { p.DeviceCode(w, 200, DeviceCode{Action: "/device"}) }},
		{"devicecode_linked", func(p *Pages, w http.ResponseWriter) {
			p.DeviceCode(w, 200, DeviceCode{Action: "/device", Code: "WDJB-MJHT"})
		}},
		{"devicecode-problem", func(p *Pages, w http.ResponseWriter) {
			p.DeviceCode(w, 400,
				DeviceCode{Action: "/device", Code: "wdjb-mjht", Problem: Say("device.wrong")})
		}},
		{"device", func(p *Pages, w http.ResponseWriter) { p.Device(w, sampleDevice()) }},
		{"devicedone", func(p *Pages, w http.ResponseWriter) {
			p.DeviceDone(w, DeviceDone{Client: Party{Name: "mcp-authd login"}, Resource: notes})
		}},
		{"devicedone-denied", func(p *Pages, w http.ResponseWriter) {
			p.DeviceDone(w, DeviceDone{Client: Party{Name: "mcp-authd login"}, Resource: notes, Denied: true})
		}},
		{"remote", func(p *Pages, w http.ResponseWriter) { p.Remote(w, sampleRemote()) }},
		{"remoteover", func(p *Pages, w http.ResponseWriter) { p.RemoteOver(w, RemoteOver{AgainURL: "/login"}) }},
		{"remoteover-denied", func(p *Pages, w http.ResponseWriter) {
			p.RemoteOver(w, RemoteOver{Denied: true, AgainURL: "/login"})
		}},
		{"remoteask", func(p *Pages, w http.ResponseWriter) { p.RemoteAsk(w, 200, sampleRemoteAsk()) }},
		{"remoteask-problem", func(p *Pages, w http.ResponseWriter) {
			v := sampleRemoteAsk()
			v.Near, v.Problem = false, Say("remote.number_missing")
			p.RemoteAsk(w, 400, v)
		}},
		{"remotedone", func(p *Pages, w http.ResponseWriter) {
			p.RemoteDone(w, RemoteDone{Outcome: "approved", AccountURL: "/account"})
		}},
		{"remotedone-denied", func(p *Pages, w http.ResponseWriter) {
			p.RemoteDone(w, RemoteDone{Outcome: "denied", AccountURL: "/account"})
		}},
		{"remotedone-mistaken", func(p *Pages, w http.ResponseWriter) {
			p.RemoteDone(w, RemoteDone{Outcome: "wrong number", AccountURL: "/account"})
		}},
		{"setup", func(p *Pages, w http.ResponseWriter) { p.Setup(w, 200, setup) }},
		{"setup-problem", func(p *Pages, w http.ResponseWriter) { p.Setup(w, 400, setupFailed) }},
		{"setupdone", func(p *Pages, w http.ResponseWriter) {
			p.SetupDone(w, SetupDone{
				Username: "alice", Issuer: "https://auth.example.com", Passkeys: true, Console: true,
			})
		}},
		{"setupdone-second", func(p *Pages, w http.ResponseWriter) {
			p.SetupDone(w, SetupDone{
				Username: "alice", Issuer: "https://auth.example.com", Second: true, Console: true,
			})
		}},
		{"home", func(p *Pages, w http.ResponseWriter) {
			p.Home(w, Home{
				Issuer: "https://auth.example.com", Username: "alice", SignOutAction: "/logout", Step: "sealed-step",
				Resources: []Party{notes, {Name: "Calendar", URL: "https://calendar.example.com/mcp"}}})
		}},
		{"home-password", func(p *Pages, w http.ResponseWriter) {
			p.Home(w, Home{Issuer: "https://auth.example.com", SignInURL: "/login", Resources: []Party{notes}})
		}},
		{"deadend", func(p *Pages, w http.ResponseWriter) {
			p.Error(w, http.StatusNotFound,
				Error{Title: Say("error.not_found"), Message: Say("error.not_found_message"),
					Advice: Say("error.not_found_advice"), Home: true, RequestID: "k3J9xQ2mPz1a"})
		}},
		{"home-empty", func(p *Pages, w http.ResponseWriter) { p.Home(w, Home{Issuer: "https://auth.example.com"}) }},
		{"link", func(p *Pages, w http.ResponseWriter) { p.Link(w, 200, sampleInvitation) }},
		{"link-stop", func(p *Pages, w http.ResponseWriter) { p.Link(w, 200, sampleStop) }},
		{"link-recover", func(p *Pages, w http.ResponseWriter) { p.Link(w, 200, sampleRecovery) }},
		{"linkmessage", func(p *Pages, w http.ResponseWriter) {
			p.LinkMessage(w, 404, LinkMessage{Heading: Say("link.gone"), Lead: Say("link.gone_lead")})
		}},
		{"notices", func(p *Pages, w http.ResponseWriter) { p.Notices(w, sampleNotices) }},
		{"forgotten", func(p *Pages, w http.ResponseWriter) {
			p.Forgotten(w, Forgotten{Action: "/login/forgotten", Step: "sealed-step"})
		}},
		{"home-language", func(p *Pages, w http.ResponseWriter) {
			p.Offering("/?a=b&c").Home(w, Home{Issuer: "https://auth.example.com", SignInURL: "/login"})
		}},
		{"chooser", func(p *Pages, w http.ResponseWriter) {
			p.Chooser(w, Chooser{
				Action: "/choose", Client: claude, Resource: notes,
				Accounts:   []Signed{{"alice", "sealed-alice"}, {"bob", "sealed-bob"}},
				AnotherURL: "/authorize?client_id=x&prompt=login+select_account",
			})
		}},
		{"signedout", func(p *Pages, w http.ResponseWriter) { p.SignedOut(w, SignedOut{}) }},
		{"signedout-others", func(p *Pages, w http.ResponseWriter) {
			p.SignedOut(w, SignedOut{Action: "/logout", Step: "sealed-step"})
		}},
	}...)
}

func sampleDevice() Device {
	r := sampleRequest()
	r.Client = Party{Name: "mcp-authd login", URL: "mcp_kD93jfkw0d"}
	r.RedirectHost, r.RedirectURI = "", ""
	return Device{
		Action: "/device", Step: "sealed-step", Request: r, Code: "WDJB-MJHT", Agent: "mcp-authd/1.2",
		Address: "192.0.2.17", Near: true, Asked: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Username: "alice", SignOutAction: "/logout", SignOutStep: "sealed-sign-out",
	}
}

func newPages(t testing.TB, c Config) *Pages {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

func record(p *Pages, show func(*Pages, http.ResponseWriter)) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	show(p, w)
	return w
}

// TestRenderGallery writes all pages in all languages to WEB_GALLERY_DIR, for viewing with any
// static file server (test/browser does), or else to a temporary directory.
func TestRenderGallery(t *testing.T) {
	dir := os.Getenv("WEB_GALLERY_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	p := newPages(t, Config{})
	for path, file := range p.assets.files {
		write(t, filepath.Join(dir, path), file.body)
	}
	shown := map[string]bool{}
	for _, s := range samples() {
		shown[s.name] = true
		for _, language := range p.Languages() {
			page := record(p.For(language), s.show).Body.Bytes()
			write(t, filepath.Join(dir, language, s.name+".html"), page)
			for _, m := range linked.FindAllSubmatch(page, -1) { // all files that a page needs exist
				if _, err := os.Stat(filepath.Join(dir, string(m[1]))); err != nil {
					t.Errorf("%s: %v", s.name, err)
				}
			}
			if !bytes.Contains(page, []byte("</main>")) || len(linked.FindAll(page, -1)) < 2 {
				t.Errorf("%s in %s must be a whole page: %.200s", s.name, language, page)
			}
		}
	}
	for _, s := range consoleSamples() { // only in English
		shown["console"] = true
		write(t, filepath.Join(dir, "en", s.name+".html"), record(p, s.show).Body.Bytes())
	}
	for _, name := range pageNames {
		if !shown[name] {
			t.Errorf("the gallery has no page %s", name)
		}
	}
}

var linked = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

func write(t *testing.T, path string, body []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

// sampleAccount is the account page of a user with several of everything.
