package authserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// byLink opens the link of a code like a browser that comes from another site. "none" is a typed
// address, or one that another program has opened.
func (p *person) byLink(code, site string) page {
	p.t.Helper()
	return p.get(devicePath(code), "Sec-Fetch-Site", site)
}

// RFC 8628 §5.4: a requesting program chooses its own name. The page shows the name of a program in
// quotes, and a browser in the server's own words.
func TestProgramsThatAskAreNamedInWordsOfOurs(t *testing.T) {
	for agent, want := range map[string]string{
		"Your own TV. Google verified it. Press Approve now to keep your account safe": "“Your”",
		"Press-Approve-now/1": "“Press-Approve-now”",
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0.0.0 Press Approve": "Chrome on Windows",
	} {
		r, tv := withDevice(t)
		pg := tv.post("/device_authorization", url.Values{"client_id": {"tv"}, "resource": {testResource}},
			"User-Agent", agent)
		var a asked
		if err := json.Unmarshal([]byte(pg.body), &a); err != nil {
			t.Fatal(err)
		}
		shown := r.person().signInFor(devicePath(a.UserCode))
		if !strings.Contains(shown.body, want) || strings.Contains(shown.body, "verified it") {
			t.Errorf("%q: want %q on %s", agent, want, shown.body)
		}
	}
}

// RFC 8628 §3.3.1: a code from a link is filled in, and is looked up when the user presses the
// button.
func TestLinksWithCodes(t *testing.T) {
	for _, site := range []string{"cross-site", "same-site", "none"} {
		t.Run("of a device, "+site, func(t *testing.T) {
			r, tv := withDevice(t)
			_, a := tv.ask()
			phone := r.person()
			if pg := phone.byLink(a.UserCode, site); !strings.Contains(pg.body, `name="password"`) {
				t.Fatalf("a stranger is not asked to sign in: %d", pg.status)
			}
			phone.signInFor("/login")
			pg := phone.byLink(strings.ToLower(a.UserCode), site)
			if pg.status != http.StatusOK || deviceForm.MatchString(pg.body) || strings.Contains(pg.body, "A TV") ||
				!strings.Contains(pg.body, `name="user_code" value="`+a.UserCode+`"`) ||
				!strings.Contains(pg.body, "This code came with a link") {
				t.Fatalf("got %d %s", pg.status, pg.body)
			}
			pressed := phone.byLink(a.UserCode, "same-origin")
			if pg := phone.decideDevice(pressed, "approve"); !strings.Contains(pg.body, "Your device is connected") {
				t.Errorf("got %d %.400s", pg.status, pg.body)
			}
		})
		t.Run("of a browser, "+site, func(t *testing.T) {
			r := newRig(t)
			w := r.person().askRemote("/login")
			phone := r.person()
			phone.signInFor("/login")
			if pg := phone.byLink(w.code, site); strings.Contains(pg.body, `name="number"`) ||
				!strings.Contains(pg.body, `name="user_code" value="`+w.code+`"`) {
				t.Fatalf("got %d %s", pg.status, pg.body)
			}
			if pg := phone.byLink(w.code, "same-origin"); !strings.Contains(pg.body, `name="number"`) {
				t.Errorf("got %d %.400s", pg.status, pg.body)
			}
		})
	}
	t.Run("attack: a page that sends a browser here with wrong codes does not keep its person from theirs",
		func(t *testing.T) {
			r, tv := withDevice(t)
			_, a := tv.ask()
			phone := r.person()
			phone.signInFor("/login")
			for range 30 {
				for _, code := range []string{"BCDF-GHJK", "4CDF-GHJK"} {
					if pg := phone.byLink(code, "cross-site"); pg.status != http.StatusOK {
						t.Fatalf("got %d", pg.status)
					}
				}
			}
			if strings.Contains(r.log.String(), `"msg":"device.unknown"`) {
				t.Error("codes of a link were looked up")
			}
			if pg := phone.byLink(a.UserCode, "same-origin"); !deviceForm.MatchString(pg.body) {
				t.Errorf("the right code: got %d", pg.status)
			}
		})
	t.Run("what is no code is not filled in", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		p.signInFor("/login")
		if pg := p.byLink("Call 555 0100 now", "cross-site"); pg.status != http.StatusOK ||
			!strings.Contains(pg.body, `name="user_code" value=""`) {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
}

// PE-09: the first use of a connection with a device code has a place, like every use.
func TestDeviceCodesAreUsedFromSomewhere(t *testing.T) {
	r, tv := withDevice(t)
	_, a := tv.ask()
	phone := r.person()
	phone.decideDevice(phone.signInFor(devicePath(a.UserCode)), "approve")
	if status, out := tv.poll(a); status != http.StatusOK {
		t.Fatalf("got %d %v", status, out)
	}
	u, err := r.store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.store.Connections(t.Context(), u.ID, "", r.now(), 10)
	if err != nil || len(got) != 1 || got[0].UsedFrom != "127.0.0.0/24" {
		t.Errorf("got %+v, %v", got, err)
	}
}
