package authserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// withDevice returns a rig with a public client for devices, and its browser without a user.
func withDevice(t *testing.T, change ...func(*Config)) (*rig, *person) {
	t.Helper()
	r := newRig(t, change...)
	for _, c := range []storage.Client{
		{ID: "tv", Name: "A TV", GrantTypes: []string{oauth.GrantDeviceCode, oauth.GrantRefresh},
			AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: r.now()},
		{ID: "box", Name: "Another box", GrantTypes: []string{oauth.GrantDeviceCode}, AuthMethod: "none",
			Source: storage.SourceDynamic, CreatedAt: r.now()},
	} {
		if err := r.store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return r, r.person()
}

// asked is the response to a device authorization request.
type asked struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	URI        string `json:"verification_uri"`
	Complete   string `json:"verification_uri_complete"`
	ExpiresIn  int    `json:"expires_in"`
	Interval   int    `json:"interval"`
	Error      string `json:"error"`
}

// ask sends a device authorization request; change contains pairs.
func (p *person) ask(change ...string) (int, asked) {
	p.t.Helper()
	v := url.Values{"client_id": {"tv"}, "resource": {testResource}, "scope": {"mcp notes:write"}}
	for i := 0; i+1 < len(change); i += 2 {
		v.Set(change[i], change[i+1])
	}
	pg := p.post("/device_authorization", v, "User-Agent", "tv-app/1.0")
	var out asked
	if err := json.Unmarshal([]byte(pg.body), &out); err != nil {
		p.t.Fatalf("got %d %s", pg.status, pg.body)
	}
	return pg.status, out
}

// poll requests the tokens of a device.
func (p *person) poll(a asked, change ...string) (int, map[string]any) {
	p.t.Helper()
	v := url.Values{
		"grant_type": {oauth.GrantDeviceCode}, "client_id": {"tv"}, "device_code": {a.DeviceCode},
	}
	for i := 0; i+1 < len(change); i += 2 {
		v.Set(change[i], change[i+1])
	}
	return p.token(v)
}

func (p *person) wantPoll(a asked, status int, code string) {
	p.t.Helper()
	got, out := p.poll(a)
	if got != status || out["error"] != code {
		p.t.Errorf("poll: got %d %v, want %d %s", got, out["error"], status, code)
	}
}

// signInFor signs alice in on her way to a page.
func (p *person) signInFor(path string) page {
	p.t.Helper()
	pg := p.post("/login", url.Values{
		"step": {p.get(path).step(p.t)}, "username": {"alice"}, "password": {"correct horse battery"},
	})
	if pg.status != http.StatusSeeOther {
		p.t.Fatalf("login: got %d %.300s", pg.status, pg.body)
	}
	return p.get(p.there(pg))
}

// there returns the target of a redirect.
func (p *person) there(pg page) string {
	return strings.TrimPrefix(pg.header.Get("Location"), p.http.URL)
}

func devicePath(code string) string { return "/device?user_code=" + url.QueryEscape(code) }

var deviceForm = regexp.MustCompile(`(?s)<form[^>]*method="post" action="[^"]*/device".*?</form>`)

// decideDevice answers the page of a device.
func (p *person) decideDevice(pg page, verdict string) page {
	p.t.Helper()
	step := page{body: deviceForm.FindString(pg.body), status: pg.status}.step(p.t)
	return p.post("/device", url.Values{"step": {step}, "decision": {verdict}})
}

func TestDeviceGrant(t *testing.T) {
	t.Run("AS-240 RFC 8628: a device gets tokens for what a person approved elsewhere, once", func(t *testing.T) {
		_, tv := withDevice(t)
		status, a := tv.ask()
		if status != http.StatusOK || a.ExpiresIn != 600 || a.Interval != 5 || a.URI != tv.http.URL+"/device" ||
			a.Complete != a.URI+"?user_code="+a.UserCode {
			t.Fatalf("got %d %+v", status, a)
		}
		if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(a.UserCode) {
			t.Errorf("the user code is %q", a.UserCode)
		}
		tv.wantPoll(a, http.StatusBadRequest, "authorization_pending")

		phone := tv.rig.person()
		if pg := phone.get("/device"); pg.status != 200 || !strings.Contains(pg.body, `name="user_code"`) {
			t.Fatalf("got %d %.300s", pg.status, pg.body)
		}
		pg := phone.signInFor(devicePath(strings.ToLower(strings.ReplaceAll(a.UserCode, "-", " "))))
		for _, want := range []string{
			a.UserCode, "A TV", "has not been verified", testResource, "use the server", "add notes", "127.0.0.1",
			"“tv-app”", "21 November 2026, 12:00 UTC", "Signed in as", "alice", "a person who sent it to you",
		} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("the page does not say %q: %s", want, pg.body)
			}
		}
		tv.wantPoll(a, http.StatusBadRequest, "slow_down")
		if pg := phone.decideDevice(pg, "approve"); !strings.Contains(pg.body, "Your device is connected") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		status, tokens := tv.poll(a, "resource", testResource)
		if status != http.StatusOK || tokens["scope"] != "mcp notes:write" || tokens["refresh_token"] == nil {
			t.Fatalf("got %d %v", status, tokens)
		}
		status, again := tv.token(refreshForm(tokens["refresh_token"], "client_id", "tv"))
		if status != http.StatusOK || again["access_token"] == nil {
			t.Errorf("refresh: got %d %v", status, again)
		}
		tv.wantPoll(a, http.StatusBadRequest, "invalid_grant")
		if !strings.Contains(tv.log.String(), `"msg":"device.requested"`) ||
			!strings.Contains(tv.log.String(), `"msg":"consent.approved"`) {
			t.Error("SP-28: the log does not tell")
		}
	})
	t.Run("RFC 8628 3.5: denied, and expired", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		pg := phone.decideDevice(phone.signInFor(devicePath(a.UserCode)), "deny")
		if !strings.Contains(pg.body, "Nothing was connected") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		tv.wantPoll(a, http.StatusBadRequest, "access_denied")
		_, a = tv.ask()
		open := phone.get(devicePath(a.UserCode))
		r.advance(10 * time.Minute)
		tv.wantPoll(a, http.StatusBadRequest, "expired_token")
		pg = phone.decideDevice(open, "approve")
		if pg.status != 400 || !strings.Contains(pg.body, "No device is waiting") {
			t.Errorf("an expired request is approved: %d %s", pg.status, pg.body)
		}
		tv.wantPoll(a, http.StatusBadRequest, "expired_token")
	})
	t.Run("RFC 8628 3.5: an approval that is fetched too late is expired", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		phone.decideDevice(phone.signInFor(devicePath(a.UserCode)), "approve")
		r.advance(10 * time.Minute)
		tv.wantPoll(a, http.StatusBadRequest, "expired_token")
	})
	t.Run("RFC 8628 3.3.1: a GET approves nothing, whatever was approved before", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		phone.decideDevice(phone.signInFor(devicePath(a.UserCode)), "approve")
		_, b := tv.ask()
		if pg := phone.get(devicePath(b.UserCode) + "&decision=approve"); !deviceForm.MatchString(pg.body) {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		tv.wantPoll(b, http.StatusBadRequest, "authorization_pending")
	})
	t.Run("AS-240 two redemptions at once: one gets tokens", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		phone.decideDevice(phone.signInFor(devicePath(a.UserCode)), "approve")
		var wg sync.WaitGroup
		got := make(chan int, 8)
		for range cap(got) {
			wg.Go(func() { status, _ := tv.poll(a); got <- status })
		}
		wg.Wait()
		close(got)
		won := 0
		for status := range got {
			if status == http.StatusOK {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d of 8 got tokens", won)
		}
	})
}

func TestDeviceRequestsRefused(t *testing.T) {
	_, tv := withDevice(t)
	for _, tt := range []struct {
		name   string
		change []string
		status int
		want   string
	}{
		{"a client that is not registered for it", []string{"client_id", "app"}, 400, "unauthorized_client"},
		{"an unknown client", []string{"client_id", "nobody"}, 401, "invalid_client"},
		{"another resource", []string{"resource", "https://other.example"}, 400, "invalid_target"},
		{"a client with a secret without it", []string{"client_id", "static"}, 401, "invalid_client"},
	} {
		t.Run("RFC 8628 3.1: "+tt.name, func(t *testing.T) {
			if status, a := tv.ask(tt.change...); status != tt.status || a.Error != tt.want || a.UserCode != "" {
				t.Errorf("got %d %+v, want %d %s", status, a, tt.status, tt.want)
			}
		})
	}
	_, a := tv.ask()
	for _, tt := range []struct {
		name   string
		change []string
		status int
		want   string
	}{
		{"of another client", []string{"client_id", "box"}, 400, "invalid_grant"},
		{"of a client that is not registered for it", []string{"client_id", "app"}, 400, "unauthorized_client"},
		{"with no code", []string{"device_code", ""}, 400, "invalid_request"},
		{"with the user code", []string{"device_code", a.UserCode}, 400, "invalid_grant"},
		{"for another resource", []string{"resource", "https://other.example"}, 400, "invalid_target"},
	} {
		t.Run("RFC 8628 3.4: a poll "+tt.name, func(t *testing.T) {
			if status, out := tv.poll(a, tt.change...); status != tt.status || out["error"] != tt.want {
				t.Errorf("got %d %v, want %d %s", status, out, tt.status, tt.want)
			}
		})
	}
	t.Run("AS-06 a device code in the URL is refused", func(t *testing.T) {
		pg := tv.post("/token?device_code="+a.DeviceCode, url.Values{"grant_type": {oauth.GrantDeviceCode}})
		if pg.status != 400 || !strings.Contains(pg.body, "not in the URL") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("a device code is no authorization code", func(t *testing.T) {
		status, out := tv.token(codeForm(a.DeviceCode))
		if status != 400 || out["error"] != "invalid_grant" {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("RFC 8628 3.5: who polls too often waits longer each time", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		tv.wantPoll(a, 400, "authorization_pending")
		tv.wantPoll(a, 400, "slow_down")
		r.advance(5 * time.Second)
		tv.wantPoll(a, 400, "slow_down")
		r.advance(15 * time.Second)
		tv.wantPoll(a, 400, "authorization_pending")
	})
}

func TestDevicePage(t *testing.T) {
	t.Run("PE-07 a session with one proof approves no device where two are required", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		open := phone.signInFor(devicePath(a.UserCode))
		r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
		for what, pg := range map[string]page{
			"the page": phone.get(devicePath(a.UserCode)), "a form of before": phone.decideDevice(open, "approve"),
		} {
			if to := pg.header.Get("Location"); !strings.HasPrefix(to, "/login/second?to=") {
				t.Errorf("%s: got %d to %q", what, pg.status, to)
			}
		}
	})
	t.Run("the form of another browser, and of another person, decides nothing", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		open := phone.signInFor(devicePath(a.UserCode))
		if pg := r.person().decideDevice(open, "approve"); !strings.Contains(pg.body, "out of date") {
			t.Errorf("another browser: got %d %s", pg.status, pg.body)
		}
		step := page{body: open.body}.step(t)
		pg := phone.post("/consent", url.Values{"step": {step}, "decision": {"approve"}})
		if !strings.Contains(pg.body, "out of date") {
			t.Errorf("another form: got %d %s", pg.status, pg.body)
		}
		if _, err := r.Users().Create(t.Context(), "mallory", "another fine phrase", false); err != nil {
			t.Fatal(err)
		}
		signOut := regexp.MustCompile(`(?s)action="/logout".*?</form>`).FindString(open.body)
		pg = phone.post("/logout", url.Values{"step": {page{body: signOut}.step(t)}})
		if where := phone.there(pg); where != devicePath(a.UserCode) &&
			where != devicePath(strings.ReplaceAll(a.UserCode, "-", "")) {
			t.Errorf("after signing out: %s", where)
		}
		login := phone.get(phone.there(pg))
		phone.post("/login", url.Values{
			"step": {login.step(t)}, "username": {"mallory"}, "password": {"another fine phrase"},
		})
		if pg := phone.decideDevice(open, "approve"); pg.status != 403 ||
			!strings.Contains(pg.body, "Another person is signed in") {
			t.Errorf("another person: got %d %s", pg.status, pg.body)
		}
		tv.wantPoll(a, 400, "authorization_pending")
	})
	t.Run("a client that changes between page and click is asked about again", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		open := phone.signInFor(devicePath(a.UserCode))
		c, err := r.store.Client(t.Context(), "tv")
		if err != nil {
			t.Fatal(err)
		}
		c.Name = "Your bank"
		if err := r.store.ReplaceClient(t.Context(), c, r.now()); err != nil {
			t.Fatal(err)
		}
		if pg := phone.decideDevice(open, "approve"); !deviceForm.MatchString(pg.body) ||
			!strings.Contains(pg.body, "Your bank") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		tv.wantPoll(a, 400, "authorization_pending")
	})
	t.Run("two tabs: the second decision counts for nothing", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		open := phone.signInFor(devicePath(a.UserCode))
		phone.decideDevice(open, "deny")
		pg := phone.decideDevice(open, "approve")
		if pg.status != 400 || !strings.Contains(pg.body, "No device is waiting") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		tv.wantPoll(a, 400, "access_denied")
	})
	t.Run("another site cannot post the form", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		phone := r.person()
		open := phone.signInFor(devicePath(a.UserCode))
		pg := phone.post("/device", url.Values{"step": {open.step(t)}, "decision": {"approve"}},
			"Sec-Fetch-Site", "cross-site")
		if pg.status != 403 {
			t.Errorf("got %d", pg.status)
		}
		tv.wantPoll(a, 400, "authorization_pending")
	})
	t.Run("the page of a stranger looks nothing up", func(t *testing.T) {
		r, tv := withDevice(t)
		_, a := tv.ask()
		right, wrong := r.person().get(devicePath(a.UserCode)), r.person().get(devicePath("BCDF-GHJK"))
		if right.status != wrong.status || strings.Contains(right.body, "A TV") {
			t.Errorf("got %d and %d", right.status, wrong.status)
		}
	})
}

// AS-240: 1,000 guesses.
func TestGuessedDeviceCodes(t *testing.T) {
	r, tv := withDevice(t)
	_, a := tv.ask()
	phone := r.person()
	phone.signInFor("/login")
	looked := 0
	for i := range 1000 {
		code := fmt.Sprintf("%c%c%c%c-BBBB", "BCDFGHJKLM"[i%10], "BCDFGHJKLM"[i/10%10], "BCDFGHJKLM"[i/100], 'B')
		switch pg := phone.get(devicePath(code)); pg.status {
		case http.StatusBadRequest:
			looked++
		case http.StatusTooManyRequests:
			if pg.header.Get("Retry-After") == "" {
				t.Fatal("no Retry-After")
			}
		default:
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
	}
	if looked != 10 {
		t.Errorf("%d of 1000 guesses were looked up, want 10", looked)
	}
	if pg := phone.get(devicePath(a.UserCode)); pg.status != http.StatusTooManyRequests {
		t.Errorf("the right code after them: got %d", pg.status)
	}
	if got := strings.Count(r.log.String(), `"msg":"device.unknown"`); got != looked {
		t.Errorf("SP-28: the log has %d of %d wrong codes", got, looked)
	}
	r.advance(15 * time.Minute)
	_, a = tv.ask()
	if pg := phone.get(devicePath(a.UserCode)); !deviceForm.MatchString(pg.body) {
		t.Errorf("a quarter of an hour later: got %d %s", pg.status, pg.body)
	}
}

// Codes are stored as digests.
func TestDeviceCodesAtRest(t *testing.T) {
	r, tv := withDevice(t)
	_, a := tv.ask()
	plain := storage.Hash(secrets.Hash(strings.ReplaceAll(a.UserCode, "-", "")))
	if _, err := r.store.DeviceByUserCode(t.Context(), plain, r.now()); err == nil {
		t.Error("the user code is stored under a digest that anyone can compute")
	}
	if strings.Contains(r.log.String(), a.DeviceCode) || strings.Contains(r.log.String(), a.UserCode) {
		t.Error("SP-28: a code is in the log")
	}
}
