package authserver

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/cookie"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestCallback(t *testing.T) {
	r, f := delegated(t)
	t.Run("AS-217 AS-222 the code comes after the account was named, for consent was given, and the grant rests on the session there",
		func(t *testing.T) {
			p := r.person()
			back := p.back(
				callback(t, "google", p.leave(authorizeQuery("provider", "google", "scope", "mcp notes:write"))),
			)
			got := responseOf(t, back)
			if !strings.HasPrefix(back.header.Get("Location"), testRedirect+"?") || !got.Has("code") ||
				got.Get("state") != "st-1" || got.Get("iss") != r.Issuer() {
				t.Fatalf("got %d %v", back.status, got)
			}
			_, out := p.token(codeForm(got.Get("code")))
			claims := r.verified(t, out["access_token"].(string))
			if claims.Subject != "usr_googleada" || out["scope"] != "mcp notes:write" {
				t.Errorf("got %v %+v", out, claims)
			}
			if token, _ := r.store.TokenActive(t.Context(),
				storage.TokenKey{GrantID: claims.GrantID, ClientID: "app", Now: r.now()},
			); !strings.HasPrefix(token.UpstreamID, "ups_") {
				t.Errorf("the grant depends on %q", token.UpstreamID)
			}
			if pg := p.get("/account"); !strings.Contains(pg.body, "ada@google") {
				t.Error("the browser is not signed in")
			}
		})
	t.Run("a private-use scheme gets a page", func(t *testing.T) {
		if err := r.store.PutClient(t.Context(),
			storage.Client{
				ID: "desk", Name: "Desk", RedirectURIs: []string{"desk://cb"}, GrantTypes: []string{oauth.GrantCode},
				AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: r.now()}); err != nil {
			t.Fatal(err)
		}
		p := r.person()
		left := p.leave(authorizeQuery("provider", "google", "client_id", "desk", "redirect_uri", "desk://cb"))
		if pg := p.back(callback(t, "google", left), "Sec-Fetch-Dest", "document"); pg.status != 200 ||
			!strings.HasPrefix(pg.header.Get("Refresh"), "0; url=desk://cb?code=") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("AS-220 SP-04 a replayed callback is refused, and ends nothing", func(t *testing.T) {
		p := r.person()
		url := callback(t, "google", p.leave(authorizeQuery("provider", "google")))
		code := responseOf(t, p.back(url)).Get("code")
		before := f.returns
		if pg := p.get(url); pg.status != 400 || pg.header.Get("Location") != "" || f.returns != before {
			t.Errorf("got %d, %d returns", pg.status, f.returns-before)
		}
		if status, out := p.token(codeForm(code)); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-220 AS-47 login CSRF: the state of another browser is refused, and stays good for its own",
		func(t *testing.T) {
			attacker, victim := r.person(), r.person()
			url := callback(t, "google", attacker.leave(authorizeQuery("provider", "google")))
			victim.leave(authorizeQuery("provider", "google"))
			before := f.returns
			for _, browser := range []*person{victim, r.person()} {
				if pg := browser.get(url); pg.status != 400 || pg.header.Get("Location") != "" ||
					sessionCookie(browser) != "" || f.returns != before {
					t.Errorf("got %d, %d returns", pg.status, f.returns-before)
				}
			}
			if got := responseOf(t, attacker.back(url)); !got.Has("code") {
				t.Errorf("got %v", got)
			}
		})
	t.Run("AS-220 missing, unknown, repeated and old state", func(t *testing.T) {
		p := r.person()
		good := callback(t, "google", p.leave(authorizeQuery("provider", "google")))
		state := strings.TrimPrefix(good[strings.Index(good, "state="):], "state=")
		before := f.returns
		for _, path := range []string{
			"/callback/google", "/callback/google?code=x", "/callback/google?code=x&state=",
			"/callback/google?code=x&state=unknown", "/callback/google?code=x&state=" + state + "&state=" + state,
		} {
			if pg := p.get(path); pg.status != 400 || pg.header.Get("Location") != "" || f.returns != before {
				t.Errorf("%s: got %d", path, pg.status)
			}
		}
		r.advance(10 * time.Minute)
		if pg := p.get(good); pg.status != 400 || f.returns != before {
			t.Errorf("after ten minutes: got %d", pg.status)
		}
	})
	t.Run("session fixation: a session planted before is not the one that is signed in", func(t *testing.T) {
		p := r.person()
		p.client.Jar.SetCookies(mustURL(t, p.http.URL),
			[]*http.Cookie{{Name: cookie.Name(p.http.URL, "session"), Value: "planted", Path: "/"}})
		p.back(callback(t, "google", p.leave(authorizeQuery("provider", "google"))))
		if got := sessionCookie(p); got == "planted" || got == "" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("AS-225 SP-17 mix-up: the callback of another provider is refused at the client's redirect URI",
		func(t *testing.T) {
			p := r.person()
			got := responseOf(t, p.back(callback(t, "github", p.leave(authorizeQuery("provider", "google")))))
			if got.Get("error") != "server_error" || got.Has("code") || sessionCookie(p) != "" {
				t.Errorf("got %v", got)
			}
		})
	t.Run("an unknown provider", func(t *testing.T) {
		if pg := r.person().get("/callback/evil?state=x"); pg.status != 404 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-60 nothing in the callback says where the browser goes", func(t *testing.T) {
		p := r.person()
		url := callback(t, "google", p.leave(authorizeQuery("provider", "google")), "redirect_uri",
			"https://evil.example/", "return_to", "//evil.example", "next", "https://evil.example/")
		if pg := p.back(url); !strings.HasPrefix(pg.header.Get("Location"), testRedirect) {
			t.Errorf("got %v", pg.header)
		}
	})
}

func mustURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestCallbackByForm(t *testing.T) {
	r, f := delegated(t)
	t.Run("AS-220 a response by form_post comes in by a GET, to which the cookie is sent", func(t *testing.T) {
		p := r.person()
		state := responseOf(t, p.leave(authorizeQuery("provider", "google"))).Get("state")
		stranger := r.person() // the browser sends no Lax cookie with a post from another site
		pg := stranger.post("/callback/google",
			url.Values{"state": {state}, "code": {"c"}, "user": {`{"email":"ada@example.com"}`},
				"id_token": {"secret"}},
			"Origin", "https://appleid.apple.com", "Sec-Fetch-Site", "cross-site")
		to := pg.header.Get("Location")
		if pg.status != 303 || !strings.HasPrefix(to, "/callback/google?") || strings.Contains(to, "ada") ||
			strings.Contains(to, "secret") || f.returns != 0 {
			t.Fatalf("got %d %s", pg.status, to)
		}
		if got := responseOf(t, p.back(to)); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	for _, tt := range []struct {
		name   string
		form   url.Values
		header []string
		want   int
	}{
		{"RS-196 a body over the limit", url.Values{"state": {strings.Repeat("a", maxFormBytes)}}, nil, 413},
		{"RS-196 a body that would make too long an address",
			url.Values{"state": {"x"}, "code": {strings.Repeat("a", maxQueryBytes)}}, nil, 413},
		{"another type of body", url.Values{"state": {"x"}}, []string{"Content-Type", "application/json"}, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if pg := r.person().post("/callback/google", tt.form, tt.header...); pg.status != tt.want ||
				pg.header.Get("Location") != "" {
				t.Errorf("got %d", pg.status)
			}
		})
	}
	t.Run("RS-196 a query over the limit", func(t *testing.T) {
		if pg := r.person().get("/callback/google?state=x&code=" +
			strings.Repeat("a", maxQueryBytes)); pg.status != 414 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-220 a HEAD, as by link previews, uses nothing up", func(t *testing.T) {
		p := r.person()
		url := callback(t, "google", p.leave(authorizeQuery("provider", "google")))
		req, _ := http.NewRequest(http.MethodHead, p.http.URL+url, nil)
		if pg := p.do(req); pg.status != 405 {
			t.Errorf("got %d", pg.status)
		}
		if got := responseOf(t, p.back(url)); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
}

func TestReturnFails(t *testing.T) {
	r, f := delegated(t)
	t.Run("AS-223 a person who says no there: access_denied, at once", func(t *testing.T) {
		p := r.person()
		pg := p.back(
			callback(t, "google", p.leave(authorizeQuery("provider", "google")), "error", "access_denied", "code",
				""), "Sec-Fetch-Dest", "document",
		)
		if got := responseOf(t, pg); got.Get("error") != "access_denied" || got.Get("state") != "st-1" ||
			sessionCookie(p) != "" {
			t.Errorf("got %v", got)
		}
	})
	for code, want := range map[oauth.Code]string{
		oauth.ServerError: "server_error", oauth.TemporarilyUnavailable: "temporarily_unavailable",
		oauth.AccessDenied:   "access_denied",
		oauth.InvalidRequest: "server_error", oauth.InvalidClient: "server_error", oauth.InvalidGrant: "server_error",
	} {
		t.Run("AS-223 the client gets "+want+" for "+string(code), func(t *testing.T) {
			f.set(func(f *providers) { f.returnErr = oauth.NewError(code, "What happened, in words.") })
			defer f.set(func(f *providers) { f.returnErr = nil })
			p := r.person()
			pg := p.back(callback(t, "google", p.leave(authorizeQuery("provider", "google"))))
			got := responseOf(t, pg)
			if got.Get("error") != want || got.Get("error_description") != "What happened, in words." ||
				got.Get("state") != "st-1" || got.Get("iss") != r.Issuer() || sessionCookie(p) != "" {
				t.Errorf("got %v", got)
			}
			if u := mustURL(t, p.http.URL); len(p.client.Jar.Cookies(u)) != 1 { // the browser id
				t.Errorf("left behind: %v", p.client.Jar.Cookies(u))
			}
			p = r.person()
			pg = p.back(callback(t, "google", p.leave(authorizeQuery("provider", "google"))), "Sec-Fetch-Dest",
				"document")
			if !strings.Contains(pg.body, "What happened, in words.") || pg.header.Get("Refresh") != "" ||
				!strings.Contains(pg.body, `href="`+testRedirect+"?error="+want) ||
				!strings.Contains(pg.body, "Try again") {
				t.Errorf("got %d %v", pg.status, pg.header)
			}
			if theirs := strings.Contains(pg.body, "You did nothing wrong"); theirs != (want != "access_denied") {
				t.Errorf("the page blames the person: %v, for %s", theirs, code)
			}
			// otherwise the same account comes back
			if asks := strings.Contains(pg.body, "select_account"); asks != (code == oauth.AccessDenied) {
				t.Errorf("trying again asks for another account: %v, for %s", asks, code)
			}
		})
	}
	t.Run("AS-223 while the store is away the trip can be completed by loading the page again", func(t *testing.T) {
		p := r.person()
		url := callback(t, "google", p.leave(authorizeQuery("provider", "google")))
		f.set(func(f *providers) { f.takeErr = http.ErrServerClosed })
		if pg := p.get(url); pg.status != 503 || pg.header.Get("Retry-After") == "" {
			t.Errorf("got %d", pg.status)
		}
		f.set(func(f *providers) { f.takeErr = nil })
		if got := responseOf(t, p.back(url)); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-223 policy that leaves nothing of what was asked: access_denied", func(t *testing.T) {
		f.set(func(f *providers) { f.permitted = oauth.Scopes{"notes:write"} })
		defer f.set(func(f *providers) { f.permitted = nil })
		p := r.person()
		if got := responseOf(t,
			p.back(callback(t, "google", p.leave(authorizeQuery("provider", "google"))))); got.Get(
			"error") != "access_denied" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a client that is gone by then", func(t *testing.T) {
		p := r.person()
		url := callback(t, "google", p.leave(authorizeQuery("provider", "google")))
		if err := r.store.DeleteClient(t.Context(), "app", r.now()); err != nil {
			t.Fatal(err)
		}
		if pg := p.get(url); pg.status != 400 || pg.header.Get("Location") != "" {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("AS-06 AS-223 SP-28 nothing of a trip reaches the log", func(t *testing.T) {
		r, _ := delegated(t)
		p := r.person()
		left := p.leave(authorizeQuery("provider", "google"))
		p.back(callback(t, "google", left, "code", "very-secret-code"))
		p.back(callback(t, "google", left, "code", "very-secret-code", "error", "x", "error_description", "hostile"))
		cookie := strings.SplitN(strings.SplitN(tripCookies(left)[0], ";", 2)[0], "=", 2)[1]
		for _, s := range []string{"very-secret-code", responseOf(t, left).Get("state"), cookie, "hostile"} {
			if strings.Contains(r.log.String(), s) {
				t.Errorf("the log holds %q", s)
			}
		}
		if !strings.Contains(r.log.String(), `"connector":"google"`) {
			t.Error("the log does not name the provider")
		}
	})
}

func TestConsentIsBoundToWhatWasShown(t *testing.T) {
	r, f := delegated(t)
	change := func(t *testing.T, what func(*storage.Client)) {
		t.Helper()
		c := storage.Client{
			ID: "changing", Name: "Changing", RedirectURIs: []string{testRedirect},
			GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none", Source: storage.SourceStatic,
			CreatedAt: r.now(),
		}
		what(&c)
		if err := r.store.ReplaceClient(t.Context(), c, r.now()); err != nil {
			t.Fatal(err)
		}
	}
	query := func() url.Values {
		return authorizeQuery("provider", "google", "redirect_uri", "", "client_id", "changing")
	}
	moved := func(c *storage.Client) { c.RedirectURIs = []string{"https://evil.example.com/cb"} }
	t.Run("AS-222 AS-224 SP-03 a redirect URI that has changed by then is asked about again", func(t *testing.T) {
		change(t, func(*storage.Client) {})
		p := r.person()
		url := callback(t, "google", p.leave(query()))
		change(t, moved)
		if pg := p.get(url); pg.status != 200 || !strings.Contains(pg.body, "evil.example.com") ||
			!strings.Contains(pg.body, `value="approve"`) {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("AS-223 AS-224 SP-03 and gets no error either", func(t *testing.T) {
		change(t, func(*storage.Client) {})
		f.set(func(f *providers) { f.returnErr = oauth.NewError(oauth.ServerError, "Something.") })
		defer f.set(func(f *providers) { f.returnErr = nil })
		p := r.person()
		url := callback(t, "google", p.leave(query()))
		change(t, moved)
		if pg := p.get(url); pg.status != 500 || pg.header.Get("Location") != "" || pg.header.Get("Refresh") != "" ||
			strings.Contains(pg.body, "evil.example.com") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
}

func TestDocumentWithProvider(t *testing.T) {
	d := &documents{doc: storage.Client{
		ID: "https://app.example.com/client.json", Name: "Doc App", RedirectURIs: []string{"http://127.0.0.1/cb"},
		GrantTypes: []string{oauth.GrantCode, oauth.GrantRefresh}, AuthMethod: "none", Source: storage.SourceCIMD,
	}}
	r, f := delegated(t, func(c *Config) {
		d.Clients = c.Store
		c.Registry = &registry{Clients: d, Documents: d}
	})
	query := documentQuery(d, "provider", "google")
	p := r.person()
	t.Run("AS-154 SP-01 the document is read after signing in, and consent comes then", func(t *testing.T) {
		pg := p.get("/authorize?" + query.Encode())
		if !strings.Contains(pg.body, "app.example.com") || d.fetches != 0 || strings.Contains(pg.body, "Doc App") {
			t.Fatalf("got %d, %d fetches", pg.status, d.fetches)
		}
		left := p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
		if tripOf(t, f.departed[0]).Approved != nil {
			t.Error("approved unseen")
		}
		back := p.back(callback(t, "google", left))
		if back.status != 303 || !strings.HasPrefix(back.header.Get("Location"), "/authorize?") || d.fetches != 0 {
			t.Fatalf("got %d %v", back.status, back.header)
		}
		if pg := p.get(back.header.Get("Location")); pg.status != 200 || !strings.Contains(pg.body, "Doc App") ||
			!strings.Contains(pg.body, `value="approve"`) || d.fetches != 1 {
			t.Errorf("got %d, %d fetches", pg.status, d.fetches)
		}
	})
	t.Run("SP-01 a stranger's denial goes nowhere", func(t *testing.T) {
		d.known = false
		p := r.person()
		pg := p.post("/consent",
			url.Values{"step": {consentStep(t, p.get("/authorize?"+query.Encode()))}, "decision": {"deny"}})
		if pg.status != 403 || pg.header.Get("Location") != "" {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("SP-01 a document that became known meanwhile is shown", func(t *testing.T) {
		d.known = false
		p := r.person()
		step, before := consentStep(t, p.get("/authorize?"+query.Encode())), len(f.departed)
		d.known = true
		if pg := p.post("/consent", url.Values{"step": {step}, "decision": {"approve"}}); pg.status != 200 ||
			!strings.Contains(pg.body, "Doc App") || len(f.departed) != before {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("SP-27 a client that is asked each time gets its code after the approval of this time", func(t *testing.T) {
		for range 2 {
			p := r.person()
			if got := responseOf(t, p.back(callback(t, "google", p.leave(query)))); !got.Has("code") {
				t.Errorf("got %v", got)
			}
		}
	})
}

func TestBackchannelLogout(t *testing.T) {
	got := ""
	r, _ := delegated(t, func(c *Config) {
		c.Delegation.(*providers).logout = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = r.PathValue("provider")
		})
	})
	t.Run("AS-219 a provider's logout token reaches its handler, from any origin", func(t *testing.T) {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, "/callback/google/logout", strings.NewReader("logout_token=x"))
		req.Header.Set("Origin", "https://accounts.google.com")
		r.Handler().ServeHTTP(w, req)
		if w.Code != 200 || got != "google" {
			t.Errorf("got %d, %q", w.Code, got)
		}
	})
}

// TestUnaskedAnswer checks the page for an administrator who approved this server at a provider and
// returns without a state (RU-12).
func TestUnaskedAnswer(t *testing.T) {
	r, _ := delegated(t)
	for _, query := range []string{"admin_consent=True&tenant=t", "iss=https%3A%2F%2Fidp.example", ""} {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "/callback/google?"+query, nil)
		req.Host, req.Header = "localhost", http.Header{"Accept": {"text/html"}}
		r.Handler().ServeHTTP(w, req)
		body := w.Body.String()
		if w.Code != 400 || !strings.Contains(body, "no application had asked for a sign-in") ||
			strings.Contains(body, "another browser") {
			t.Errorf("RU-12 %q: got %d %s", query, w.Code, body)
		}
	}
	if !strings.Contains(r.log.String(), "without a state") {
		t.Errorf("RU-12: the log does not report the missing state: %s", r.log)
	}
}

func TestResponseOnly(t *testing.T) {
	got := responseOnly(url.Values{
		"state": {"s"}, "code": {"c"}, "error": {"access_denied", "access_denied"}, "id_token": {"x"},
	})
	if got.Encode() != "code=c&error=access_denied&error=access_denied&state=s" {
		t.Errorf("PL7 RFC 6749 3.1: an error that came twice is lost: %v", got)
	}
	if got := responseOnly(url.Values{"state": {"s", "t"}}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
