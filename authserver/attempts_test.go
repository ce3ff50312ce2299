package authserver

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// watched returns a rig that records attempts.
func watched(t *testing.T) *rig {
	t.Helper()
	return newRig(t, keepAttempts)
}

func keepAttempts(c *Config) {
	c.Attempts = attempt.NewRecorder(attempt.Config{
		Store: c.Store.(storage.Attempts),
		Key:   bytes.Repeat([]byte{9}, 32),
		Now:   c.Now,
		Log:   c.Logger,
	})
}

// attempts returns the recorded attempts, newest first.
func (r *rig) attempts(q attempt.Query) []attempt.Attempt {
	r.t.Helper()
	r.as.Attempts.Write(context.Background())
	found, err := attempt.Finder{Store: r.store, Now: r.now}.Find(context.Background(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// lastAttempt returns the newest attempt.
func (r *rig) lastAttempt() attempt.Attempt {
	r.t.Helper()
	found := r.attempts(attempt.Query{})
	if len(found) == 0 {
		r.t.Fatal("no attempt was kept")
	}
	return found[0]
}

// reads reads the metadata like a program.
func (p *person) reads(path string) {
	p.get(path, "User-Agent", "broken-client/1.0", "Accept", "application/json")
}

const wellKnown = "/.well-known/oauth-authorization-server"

// TestBrokenClients checks the verdicts that operators read about faulty clients.
func TestBrokenClients(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    func(p *person)
		wait  time.Duration
		fault attempt.Fault
		whose attempt.Whose
		text  string // a part of the verdict
		got   string // part of the difference, if shown
		want  string
	}{
		{
			name: "another path behind the redirect port",
			do: func(p *person) {
				p.get("/authorize?" + authorizeQuery("redirect_uri", "http://127.0.0.1:50123/oauth/callback").Encode())
			},
			fault: attempt.RedirectURIUnknown, whose: attempt.OfClient, text: "http://127.0.0.1:50123/oauth/callback",
			got: "50123/oauth/callback", want: "33418/callback",
		},
		{
			name: "localhost for the loopback address",
			do: func(p *person) {
				p.get("/authorize?" + authorizeQuery("redirect_uri", "http://localhost:33418/callback").Encode())
			},
			fault: attempt.RedirectURIUnknown, whose: attempt.OfClient, got: "http://localhost",
			want: "http://127.0.0.1",
		},
		{
			name: "a resource with another path and a slash",
			do: func(p *person) {
				p.get("/authorize?" + authorizeQuery("resource", "https://mcp.example.com/mcp/v1/").Encode())
			},
			fault: attempt.ResourceUnknown, whose: attempt.OfClient, got: "/mcp/v1/", want: "/mcp",
		},
		{
			name:  "state lost, so that the code is never redeemed",
			do:    func(p *person) { p.approve(authorizeQuery()) },
			wait:  3 * time.Minute,
			fault: attempt.CodeNotRedeemed, whose: attempt.OfClient, text: "127.0.0.1:33418",
		},
		{
			name: "the verifier of another attempt",
			do: func(p *person) {
				p.token(codeForm(p.approve(authorizeQuery()).Get("code"), "code_verifier", strings.Repeat("v", 43)))
			},
			fault: attempt.VerifierWrong, whose: attempt.OfClient, text: "another attempt", want: "E9Melhoa",
		},
		{
			name: "a text that is no verifier",
			do: func(p *person) {
				p.token(codeForm(p.approve(authorizeQuery()).Get("code"), "code_verifier", testVerifier+"="))
			},
			fault: attempt.VerifierWrong, whose: attempt.OfClient, text: "byte 43 is 0x3d",
		},
		{
			name: "no PKCE",
			do: func(p *person) {
				p.get("/authorize?" + authorizeQuery("code_challenge", "", "code_challenge_method", "").Encode())
			},
			fault: attempt.PKCEMissing, whose: attempt.OfClient, text: "no code_challenge",
		},
		{
			name:  "a registration that is gone",
			do:    func(p *person) { p.get("/authorize?" + authorizeQuery("client_id", "of-march").Encode()) },
			fault: attempt.ClientUnknown, whose: attempt.OfClient, text: "does not know",
		},
		{
			name:  "an issuer with a slash",
			do:    func(p *person) { p.reads(wellKnown + "/") },
			wait:  3 * time.Minute,
			fault: attempt.MetadataWrongPath, whose: attempt.OfClient, got: "server/", want: "server",
		},
		{
			name:  "an issuer with a slash before an endpoint",
			do:    func(p *person) { p.reads(wellKnown); p.get("//authorize?" + authorizeQuery().Encode()) },
			wait:  3 * time.Minute,
			fault: attempt.MetadataOnly, whose: attempt.OfClient, text: wellKnown,
		},
		{
			name:  "metadata of an issuer that the client does not accept",
			do:    func(p *person) { p.reads(wellKnown) },
			wait:  3 * time.Minute,
			fault: attempt.MetadataOnly, whose: attempt.OfClient, text: "nothing followed",
		},
		{
			name:  "the popup closed",
			do:    func(p *person) { p.get("/authorize?" + authorizeQuery().Encode()) },
			wait:  11 * time.Minute,
			fault: attempt.PersonDidNotReturn, whose: attempt.OfPerson, text: "sign-in page",
		},
		{
			name: "another redirect URI with the code",
			do: func(p *person) {
				p.token(codeForm(p.approve(authorizeQuery()).Get("code"), "redirect_uri",
					"http://127.0.0.1:33419/callback"))
			},
			fault: attempt.RedirectURIChanged, whose: attempt.OfClient, got: "33419/callback", want: "33418/callback",
		},
		{
			name: "a code redeemed twice",
			do: func(p *person) {
				code := p.approve(authorizeQuery()).Get("code")
				p.token(codeForm(code))
				p.token(codeForm(code))
			},
			fault: attempt.CodeSpent, whose: attempt.OfClient, text: "a second time",
		},
		{
			name: "the person refuses",
			do: func(p *person) {
				pg := p.login(authorizeQuery())
				p.post("/consent", url.Values{"step": {consentStep(p.t, pg)}, "decision": {"deny"}})
			},
			fault: attempt.PersonRefused, whose: attempt.OfPerson,
		},
		{
			name: "a wrong password",
			do: func(p *person) {
				pg := p.get("/authorize?" + authorizeQuery().Encode())
				p.post("/login", url.Values{"step": {pg.step(p.t)}, "username": {"alice"}, "password": {"wrong"}})
			},
			fault: attempt.SignInRefused, whose: attempt.OfPerson,
		},
	} {
		t.Run("OB-01 "+tt.name, func(t *testing.T) {
			r := watched(t)
			tt.do(r.person())
			r.advance(tt.wait)
			got := r.lastAttempt()
			if got.OK || got.Fault != tt.fault || got.Whose != tt.whose || !strings.Contains(got.Text, tt.text) {
				t.Errorf("got %s of %s: %s", got.Fault, got.Whose, got.Text)
			}
			if got.Next == "" {
				t.Error("it does not say what to do next")
			}
			if tt.want == "" {
				return
			}
			d := got.Difference
			if d == nil || !strings.Contains(d.Got, tt.got) || !strings.Contains(d.Want, tt.want) {
				t.Errorf("got the difference %+v, want %q and %q", d, tt.got, tt.want)
			}
		})
	}
}

// TestAttemptThatSucceeds checks that everything from the metadata to the token is one attempt
// without a fault. Later requests cost nothing.
func TestAttemptThatSucceeds(t *testing.T) {
	r := watched(t)
	p := r.person()
	p.reads(wellKnown)
	r.advance(time.Second)
	tokens := p.signIn()
	all := r.attempts(attempt.Query{})
	if len(all) != 1 {
		t.Fatalf("OB-01: got %d attempts, want 1: %+v", len(all), all)
	}
	got := all[0]
	if !got.OK || got.Fault != "" || got.Person != "alice" || got.ClientName != "An App" ||
		got.Resource != testResource {
		t.Errorf("OB-01: got %+v", got)
	}
	var kinds []string
	for _, s := range got.Steps {
		kinds = append(kinds, string(s.Kind))
	}
	if want := "discovery authorize authorize signin authorize consent token"; strings.Join(kinds, " ") != want {
		t.Errorf("OB-01: got the steps %q, want %s", kinds, want)
	}
	if status, _ := p.token(refreshForm(tokens["refresh_token"])); status != http.StatusOK {
		t.Fatal("the refresh failed")
	}
	if after := r.lastAttempt(); len(after.Steps) != len(got.Steps) {
		t.Error("OB-01: a refresh that succeeds is kept")
	}
}

// TestFoundByReference checks that the reference on the user's page finds the attempt, like user,
// client and address.
func TestFoundByReference(t *testing.T) {
	r := watched(t)
	p := r.person()
	p.signIn()
	pg := p.get("/authorize?"+authorizeQuery("client_id", "gone").Encode(), "Accept", "text/html")
	reference := pg.header.Get("X-Request-Id")
	if _, ok := attempt.ParseReference(reference); !ok || !strings.Contains(pg.body, reference) {
		t.Fatalf("OB-02: the page has no reference %q: %s", reference, pg.body)
	}
	for name, q := range map[string]attempt.Query{
		"reference": {Reference: reference},
		"client":    {Client: "gone"},
	} {
		if got := r.attempts(q); len(got) != 1 || got[0].Fault != attempt.ClientUnknown {
			t.Errorf("OB-02: by %s: got %+v", name, got)
		}
	}
	u, err := r.store.UserByName(context.Background(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.attempts(attempt.Query{Person: u.ID}); len(got) != 1 || !got[0].OK {
		t.Errorf("OB-02: by person: got %+v", got)
	}
	if got := r.attempts(attempt.Query{Address: "127.0.0.1"}); len(got) != 2 {
		t.Errorf("OB-02: by address: got %d, want 2", len(got))
	}
	if got := r.attempts(attempt.Query{Until: r.now().Add(-time.Hour)}); len(got) != 0 {
		t.Errorf("OB-02: before: got %d, want none", len(got))
	}
}

// TestAttemptsHoldNoSecret plants marks in each field of each request, and checks that no attempt
// contains them.
func TestAttemptsHoldNoSecret(t *testing.T) {
	const mark = "PLANTED-"
	planted := url.Values{}
	for _, name := range []string{
		"state", "nonce", "code", "code_verifier", "client_secret", "client_assertion", "refresh_token", "assertion",
		"subject_token", "actor_token", "device_code", "user_code", "login_hint", "request", "request_uri", "token",
		"password", "username", "code_challenge", "unheard_of", mark + "name",
	} {
		planted.Set(name, mark+name+"-0123456789012345678901234567890123")
	}
	planted.Set("redirect_uri", "https://"+mark+"user@app.example.com/cb?t="+mark+"query#"+mark+"fragment")
	planted.Set("resource", "https://mcp.example.com/mcp?key="+mark+"resource")
	r := watched(t)
	p := r.person()
	header := []string{
		"Cookie", "c=" + mark + "cookie", "Authorization", "Bearer " + mark + "bearer",
		"User-Agent", "a/1 (" + mark + "comment)",
		"Referer", "https://example.com/" + mark + "referer", "Accept", "text/html",
	}
	sent := planted.Encode()
	p.get("/authorize?"+sent+"&client_id=app&response_type=code", header...)
	p.get("/callback/none?"+sent, header...)
	for _, path := range []string{"/token", "/par", "/device_authorization", "/login", "/consent", "/device"} {
		p.post(path, planted, header...)
	}
	for _, grant := range []string{"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer"} {
		form := url.Values{"grant_type": {grant}, "client_id": {"app"}}
		for name, v := range planted {
			form[name] = v
		}
		p.post("/token", form, header...)
	}
	r.as.Attempts.Write(context.Background())
	steps, err := r.store.Steps(context.Background(), storage.StepQuery{Until: r.now().Add(time.Hour), Limit: 100})
	if err != nil || len(steps) < 10 {
		t.Fatalf("got %d steps, %v", len(steps), err)
	}
	for _, s := range steps {
		for _, text := range append(s.Keys, string(s.Body)) {
			if strings.Contains(text, mark) || strings.Contains(text, url.QueryEscape(mark)) {
				t.Errorf("OB-01: it is kept: %s", text)
			}
		}
	}
}
