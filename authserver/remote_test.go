package authserver

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// waiting is the page of a browser that waits to be signed in from another device.
type waiting struct {
	page
	at           string // its address
	code, number string
}

var (
	remoteForm  = regexp.MustCompile(`(?s)<form[^>]*action="/login/device".*?</form>`)
	remoteShown = regexp.MustCompile(`<strong class="host"><bdi>([^<]+)</bdi></strong>`)
)

// askRemote starts a request of the browser, from a page with a sign-in.
func (p *person) askRemote(from string) waiting {
	p.t.Helper()
	login := p.get(from)
	pg := p.post("/login/device", url.Values{"step": {page{body: remoteForm.FindString(login.body)}.step(p.t)}},
		"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	if pg.status != http.StatusSeeOther {
		p.t.Fatalf("got %d %.400s", pg.status, pg.body)
	}
	w := waiting{at: p.there(pg)}
	w.page = p.get(w.at)
	shown := remoteShown.FindAllStringSubmatch(w.body, -1)
	if w.status != http.StatusOK || len(shown) != 2 {
		p.t.Fatalf("the page does not show code and number: %d %s", w.status, w.body)
	}
	w.code, w.number = shown[0][1], shown[1][1]
	return w
}

var decideForm = regexp.MustCompile(`(?s)<form [^>]*class="decide.*?</form>`)

// decideRemote answers the page about a browser.
func (p *person) decideRemote(pg page, verdict, number string) page {
	p.t.Helper()
	step := page{body: decideForm.FindString(pg.body), status: pg.status}.step(p.t)
	return p.post("/device/sign-in", url.Values{"step": {step}, "decision": {verdict}, "number": {number}})
}

// approveRemote signs a browser in from another one, where alice signs in first.
func (p *person) approveRemote(w waiting) {
	p.t.Helper()
	asked := p.get(devicePath(w.code))
	if strings.Contains(asked.body, `name="password"`) {
		asked = p.signInFor(devicePath(w.code))
	}
	if pg := p.decideRemote(asked, "approve", w.number); !strings.Contains(pg.body, "The browser is signed in") {
		p.t.Fatalf("got %d %s", pg.status, pg.body)
	}
}

// signedInAs reports whether the browser belongs to a user.
func (p *person) signedInAs(name string) bool {
	p.t.Helper()
	return strings.Contains(p.get("/").body, "<bdi>"+name+"</bdi>")
}

func (p *person) wantOver(w waiting, why string) {
	p.t.Helper()
	if pg := p.get(w.at); pg.status != http.StatusOK || !strings.Contains(pg.body, why) || p.signedInAs("alice") {
		p.t.Errorf("got %d %s, want %q", pg.status, pg.body, why)
	}
}

const (
	remoteLate   = "This was not approved in time"
	remoteDenied = "It was not approved on the other device"
)

func TestRemoteSignIn(t *testing.T) {
	t.Run("PE-15 a browser is signed in from another device, once, and goes on", func(t *testing.T) {
		r := newRig(t)
		asker, phone := r.person(), r.person()
		w := asker.askRemote("/authorize?" + authorizeQuery("prompt", "login").Encode())
		if !regexp.MustCompile(`^[2-9][BCDFGHJKLMNPQRSTVWXZ]{3}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(w.code) ||
			!regexp.MustCompile(`^[1-9][0-9]$`).MatchString(w.number) || !strings.Contains(w.body, `class="qr"`) ||
			!strings.Contains(w.body, `<noscript><meta http-equiv="refresh"`) {
			t.Fatalf("code %q, number %q: %s", w.code, w.number, w.body)
		}
		if asker.get(strings.Replace(w.at, "?", "/state?", 1)).status != http.StatusNoContent {
			t.Error("the script got a notice")
		}
		if pg := phone.get(devicePath(w.code)); !strings.Contains(pg.body, `name="password"`) ||
			strings.Contains(pg.body, "Firefox") {
			t.Errorf("a stranger is shown the question: %s", pg.body)
		}
		pg := phone.signInFor(devicePath(strings.ToLower(w.code)))
		for _, want := range []string{
			"Sign in another browser?", w.code, "<bdi>Firefox</bdi> on <bdi>Linux</bdi>", "127.0.0.1",
			"the network that you are in", "21 November 2026, 12:00 UTC", "alice", "in front of you right now",
		} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("the page does not say %q: %s", want, pg.body)
			}
		}
		if strings.Contains(pg.body, ">"+w.number+"<") {
			t.Error("the page tells the number that it asks for")
		}
		if pg := asker.get(w.at); !strings.Contains(pg.body, w.code) {
			t.Errorf("before the decision: got %d %s", pg.status, pg.body)
		}
		if pg := phone.decideRemote(pg, "approve", w.number); !strings.Contains(pg.body, "The browser is signed in") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		if asker.get(strings.Replace(w.at, "?", "/state?", 1)).status != http.StatusOK {
			t.Error("the script is not told of the decision")
		}
		got := asker.get(w.at)
		if to := asker.there(got); got.status != http.StatusSeeOther || !strings.HasPrefix(to, "/authorize?") {
			t.Fatalf("got %d to %q %s", got.status, to, got.body)
		} else if pg := asker.get(to); !strings.Contains(pg.body, "Approve access?") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		if !asker.signedInAs("alice") {
			t.Error("the browser is not signed in")
		}
		if pg := asker.get(w.at); !strings.Contains(pg.body, remoteLate) {
			t.Errorf("replayed: got %d %s", pg.status, pg.body)
		}
		again := phone.get(devicePath(w.code))
		if again.status != http.StatusBadRequest || !strings.Contains(again.body, "No browser is waiting") {
			t.Errorf("the code again: got %d %s", again.status, again.body)
		}
		for _, want := range []string{
			`"msg":"remote.requested"`, `"msg":"remote.approved"`, `"methods":"pwd device"`,
			`"what":"device-signed-in"`,
		} {
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("SP-28: the log does not tell %s", want)
			}
		}
		if signIns := phone.get("/account").body; strings.Count(signIns, "data-session=") != 2 {
			t.Errorf("PE-15: the new session is not listed: %s", signIns)
		}
	})
	t.Run("PE-15 denied, expired, and after five minutes", func(t *testing.T) {
		r := newRig(t)
		asker, phone := r.person(), r.person()
		w := asker.askRemote("/login")
		if pg := phone.decideRemote(phone.signInFor(devicePath(w.code)), "deny", ""); !strings.Contains(
			pg.body, "The browser was not signed in") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		asker.wantOver(w, remoteDenied)

		late := asker.askRemote("/login")
		open := phone.get(devicePath(late.code))
		approved := asker.askRemote("/login")
		phone.approveRemote(approved)
		r.advance(5 * time.Minute)
		asker.wantOver(late, remoteLate)
		asker.wantOver(approved, remoteLate)
		if pg := phone.decideRemote(open, "approve", late.number); !strings.Contains(pg.body, "No browser is waiting") {
			t.Errorf("an expired request is approved: %d %s", pg.status, pg.body)
		}
	})
	t.Run("PE-15 where it is turned off, no page offers or serves it", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.SignIn.NoOtherDevice = true })
		p := r.person()
		if login := p.get("/login"); strings.Contains(login.body, "/login/device") {
			t.Error("the login page offers it")
		}
		if pg := p.get("/login/device"); pg.status != http.StatusNotFound {
			t.Errorf("got %d", pg.status)
		}
		if pg := p.signInFor("/device?user_code=4BCD-FGHJ"); !strings.Contains(pg.body, "No browser is waiting") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
}

func TestRemoteAttacks(t *testing.T) {
	t.Run("PE-15 a picture that was relayed: without the number of the screen nothing is approved", func(t *testing.T) {
		r := newRig(t)
		thief, victim := r.person(), r.person()
		w := thief.askRemote("/login")
		open := victim.signInFor(devicePath(w.code))
		if pg := victim.decideRemote(open, "approve", ""); pg.status != http.StatusBadRequest ||
			!strings.Contains(pg.body, "Type the number") {
			t.Errorf("without a number: got %d %s", pg.status, pg.body)
		}
		wrong := "10"
		if w.number == wrong {
			wrong = "11"
		}
		if pg := victim.decideRemote(open, "approve", wrong); !strings.Contains(pg.body, "That number is not") {
			t.Errorf("a wrong number: got %d %s", pg.status, pg.body)
		}
		if pg := victim.decideRemote(open, "approve", w.number); !strings.Contains(pg.body, "No browser is waiting") {
			t.Errorf("a second number: got %d %s", pg.status, pg.body)
		}
		thief.wantOver(w, remoteDenied)
		if !strings.Contains(r.log.String(), `"reason":"wrong number"`) {
			t.Error("the log lacks the event")
		}
	})
	t.Run("PE-15 only the browser that asked collects", func(t *testing.T) {
		r := newRig(t)
		asker, phone, thief := r.person(), r.person(), r.person()
		w := asker.askRemote("/login")
		phone.approveRemote(w)
		for range 2 { // without and with its own cookie
			if pg := thief.get(w.at); !strings.Contains(pg.body, "out of date") || thief.signedInAs("alice") {
				t.Errorf("got %d %s", pg.status, pg.body)
			}
		}
		if pg := thief.get(strings.Replace(w.at, "?", "/state?", 1)); pg.status != http.StatusBadRequest {
			t.Errorf("the state: got %d", pg.status)
		}
		if pg := asker.get(w.at); pg.status != http.StatusSeeOther || !asker.signedInAs("alice") {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("PE-15 the form of another browser and of another person decides nothing", func(t *testing.T) {
		r := newRig(t)
		asker, phone := r.person(), r.person()
		w := asker.askRemote("/login")
		open := phone.signInFor(devicePath(w.code))
		if pg := r.person().decideRemote(open, "approve", w.number); !strings.Contains(pg.body, "out of date") {
			t.Errorf("another browser: got %d %s", pg.status, pg.body)
		}
		step := page{body: decideForm.FindString(open.body)}.step(t)
		if pg := phone.post("/device", url.Values{"step": {step}, "decision": {"approve"}}); !strings.Contains(
			pg.body, "out of date") {
			t.Errorf("another page: got %d %s", pg.status, pg.body)
		}
		if _, err := r.Users().Create(t.Context(), "mallory", "another fine phrase", false); err != nil {
			t.Fatal(err)
		}
		phone.post("/login", url.Values{
			"step": {asker.rig.person().get("/login").step(t)}, "username": {"mallory"}, "password": {"x"},
		})
		signOut := regexp.MustCompile(`(?s)<form id="[^"]*" method="post" action="/logout".*?</form>`).FindString(open.body)
		login := phone.get(phone.there(phone.post("/logout", url.Values{"step": {page{body: signOut}.step(t)}})))
		phone.post("/login", url.Values{
			"step": {login.step(t)}, "username": {"mallory"}, "password": {"another fine phrase"},
		})
		if pg := phone.decideRemote(open, "approve", w.number); pg.status != http.StatusForbidden ||
			!strings.Contains(pg.body, "Another person is signed in") {
			t.Errorf("another person: got %d %s", pg.status, pg.body)
		}
		if pg := asker.get(w.at); !strings.Contains(pg.body, w.code) {
			t.Errorf("it was decided: %d %s", pg.status, pg.body)
		}
	})
	for what, end := range map[string]func(r *rig, phone *person, u storage.User) error{
		"the account is disabled": func(r *rig, _ *person, u storage.User) error {
			return r.store.SetUserDisabled(t.Context(), u.ID, true, r.now())
		},
		"everything is stopped": func(r *rig, _ *person, u storage.User) error {
			return r.store.StopEverything(t.Context(), u.ID, r.now())
		},
		"the person signs out": func(r *rig, phone *person, _ storage.User) error {
			form := regexp.MustCompile(`(?s)<form[^>]*action="/logout".*?</form>`).FindString(phone.get("/").body)
			phone.post("/logout", url.Values{"step": {page{body: form}.step(r.t)}})
			return nil
		},
	} {
		t.Run("PE-15 between approval and collection "+what, func(t *testing.T) {
			r := newRig(t)
			asker, phone := r.person(), r.person()
			w := asker.askRemote("/login")
			phone.approveRemote(w)
			u, err := r.store.UserByName(t.Context(), "alice")
			if err == nil {
				err = end(r, phone, u)
			}
			if err != nil {
				t.Fatal(err)
			}
			asker.wantOver(w, remoteDenied)
		})
	}
	t.Run("PE-15 codes are guessed as those of devices are", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		p.signInFor(devicePath("4BCD-FGHJ"))
		w := r.person().askRemote("/login")
		for range 9 {
			p.get(devicePath("4BCD-FGHJ"))
		}
		if pg := p.get(devicePath(w.code)); pg.status != http.StatusTooManyRequests {
			t.Errorf("a code of a browser: got %d", pg.status)
		}
		if pg := p.get(devicePath("BCDF-GHJK")); pg.status != http.StatusTooManyRequests {
			t.Errorf("a code of a device: got %d", pg.status)
		}
	})
	t.Run("PE-15 requests of one network are limited", func(t *testing.T) {
		p := newRig(t).person()
		step := page{body: remoteForm.FindString(p.get("/login").body)}.step(t)
		var last page
		for range 61 {
			last = p.post("/login/device", url.Values{"step": {step}})
		}
		if last.status != http.StatusTooManyRequests || last.header.Get("Retry-After") == "" ||
			!strings.Contains(last.body, "Too many people are signing in at once") {
			t.Errorf("got %d %s", last.status, last.body)
		}
	})
}

func TestRemoteProof(t *testing.T) {
	t.Run("PE-04 PE-15 an approval needs a proof of the last five minutes", func(t *testing.T) {
		r := newRig(t)
		asker, phone := r.person(), r.person()
		open := phone.signInFor(devicePath(asker.askRemote("/login").code))
		if !decideForm.MatchString(open.body) {
			t.Fatalf("just signed in: %s", open.body)
		}
		r.advance(6 * time.Minute)
		w := asker.askRemote("/login")
		pg := phone.get(devicePath(w.code))
		to := phone.there(pg)
		if !strings.HasPrefix(to, "/prove?to=") {
			t.Fatalf("got %d to %q", pg.status, to)
		}
		pg = phone.post("/prove", url.Values{
			"step": {phone.get(to).step(t)}, "password": {"correct horse battery"},
		})
		open = phone.get(phone.there(pg))
		r.advance(5*time.Minute - time.Second - 6*time.Second)
		if pg := phone.decideRemote(open, "approve", w.number); !strings.Contains(pg.body, "is signed in") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("PE-15 a proof that grows too old before the click is asked for", func(t *testing.T) {
		r := newRig(t)
		asker, phone := r.person(), r.person()
		phone.signInFor("/login")
		r.advance(4 * time.Minute)
		w := asker.askRemote("/login")
		open := phone.get(devicePath(w.code))
		r.advance(2 * time.Minute)
		pg := phone.decideRemote(open, "approve", w.number)
		if to := phone.there(pg); !strings.HasPrefix(to, "/prove?to=") {
			t.Errorf("got %d to %q %s", pg.status, to, pg.body)
		}
	})
	t.Run("PE-04 PE-15 another device lets in no thief of ways in, and no third browser", func(t *testing.T) {
		r := newRig(t)
		asker, phone := r.person(), r.person()
		w := asker.askRemote("/login")
		phone.approveRemote(w)
		asker.get(w.at)
		if pg := asker.get(pageApp); !strings.HasPrefix(asker.there(pg), "/prove?to=") {
			t.Errorf("a way in: got %d to %q", pg.status, asker.there(pg))
		}
		next := r.person().askRemote("/login")
		if pg := asker.get(devicePath(next.code)); !strings.HasPrefix(asker.there(pg), "/prove?to=") {
			t.Errorf("another browser: got %d to %q", pg.status, asker.there(pg))
		}
	})
	t.Run("PE-07 PE-15 where two factors are required, one proof signs in no other browser", func(t *testing.T) {
		r := newRig(t)
		asker, phone := r.person(), r.person()
		w := asker.askRemote("/login")
		open := phone.signInFor(devicePath(w.code))
		r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
		for what, pg := range map[string]page{
			"the page":         phone.get(devicePath(w.code)),
			"a form of before": phone.decideRemote(open, "approve", w.number),
		} {
			if to := phone.there(pg); !strings.HasPrefix(to, "/login/second?to=") {
				t.Errorf("%s: got %d to %q", what, pg.status, to)
			}
		}
	})
	t.Run("PE-15 the other account of the browser stays signed in beside", func(t *testing.T) {
		r := newRig(t)
		if _, err := r.Users().Create(t.Context(), "bob", "another fine phrase", false); err != nil {
			t.Fatal(err)
		}
		asker, phone := r.person(), r.person()
		asker.post("/login", url.Values{
			"step": {asker.get("/login").step(t)}, "username": {"bob"}, "password": {"another fine phrase"},
		})
		w := asker.askRemote("/authorize?" + authorizeQuery("prompt", "login").Encode())
		phone.approveRemote(w)
		asker.get(w.at)
		pg := asker.get("/authorize?" + authorizeQuery("prompt", "select_account").Encode())
		if !asker.signedInAs("alice") || !strings.Contains(pg.body, "bob") || !strings.Contains(pg.body, "alice") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
}
