package pages

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	tagOrText = regexp.MustCompile(`<[^>]*>|[^<]+`)
	loaded    = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)
	headless  = regexp.MustCompile(`(?s)^.*</head>`)
)

// PE-13: a right-to-left name is isolated on every page in every language, in an element or a field
// where it does not reorder the surrounding text. Characters that would change the direction of the
// rest are not shown.
func TestNamesInAnotherDirectionStandAlone(t *testing.T) {
	const name = "\u05e9\u05dc\u05d5\u05dd"
	for _, tag := range newPages(t, Config{}).Languages() {
		p := spoken(t, tag)
		for _, s := range hostilePages("\u202e" + name) {
			alone := false
			body := headless.ReplaceAllString(record(p, s.show).Body.String(), "")
			for _, part := range tagOrText.FindAllString(body, -1) {
				field := strings.HasPrefix(part, "<input") && !strings.Contains(part, `type="hidden"`) &&
					!strings.Contains(part, `type="checkbox"`)
				switch {
				case field && strings.Contains(part, name) && !strings.Contains(part, `dir="`):
					t.Errorf("PE-13: %s in %s has a field without a direction: %s", s.name, tag, part)
				case !strings.HasPrefix(part, "<") && strings.Contains(part, name) && !alone:
					t.Errorf("PE-13: %s in %s has the name among other words: %s", s.name, tag, part)
				case strings.HasPrefix(part, "<"):
					alone = strings.HasPrefix(part, "<bdi") || strings.HasPrefix(part, "<textarea") ||
						strings.HasPrefix(part, "<code") // isolated by the style sheet
				}
			}
		}
	}
}

// PE-12: a full account page with all its assets is under 50 KB in every language: ten
// authentication methods, and as many applications and sign-ins as fit on one page.
func TestAccountPageIsSmall(t *testing.T) {
	const limit, sealed = 50_000, 190 // size of a form's sealed state
	v := fullAccount(strings.Repeat("s", sealed))
	for _, tag := range newPages(t, Config{}).Languages() {
		p := spoken(t, tag)
		page := record(p, func(p *Pages, w http.ResponseWriter) { p.Offering("/account").Account(w, 200, v) })
		size := page.Body.Len()
		for _, m := range loaded.FindAllStringSubmatch(page.Body.String(), -1) {
			size += assetSize(t, p, m[1])
		}
		if size >= limit {
			t.Errorf("PE-12: got %d bytes in %s, want under %d", size, tag, limit)
		}
	}
}

func assetSize(t *testing.T, p *Pages, path string) int {
	t.Helper()
	w := record(p, func(p *Pages, w http.ResponseWriter) {
		r, err := http.NewRequest(http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "gzip, deflate, br")
		p.Assets().ServeHTTP(w, r)
	})
	if w.Code != http.StatusOK || w.Body.Len() == 0 {
		t.Fatalf("%s: got %d", path, w.Code)
	}
	return w.Body.Len()
}

// A file is compressed for browsers that accept gzip, with the same content.
func TestAssetsAreCompressed(t *testing.T) {
	p := newPages(t, Config{})
	get := func(accept string) *http.Response {
		r, err := http.NewRequest(http.MethodGet, p.assets.paths["style.css"], nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", accept)
		return record(p, func(p *Pages, w http.ResponseWriter) { p.Assets().ServeHTTP(w, r) }).Result()
	}
	plain, err := io.ReadAll(get("").Body)
	if err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string]string{
		"gzip, br": "gzip", "br, GZIP;q=0.5": "gzip", "identity": "", "gzip;q=0": "", "gzip; q=0.0, br": "",
	} {
		got := get(accept)
		body := io.Reader(got.Body)
		if got.Header.Get("Content-Encoding") != want || got.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: got %v", accept, got.Header)
		}
		if want == "gzip" {
			if body, err = gzip.NewReader(got.Body); err != nil {
				t.Fatal(err)
			}
		}
		if read, err := io.ReadAll(body); err != nil || !bytes.Equal(read, plain) {
			t.Errorf("%q: got %d bytes, %v, want %d", accept, len(read), err, len(plain))
		}
	}
}

// fullAccount returns an account page with the maximum number of entries.
func fullAccount(step string) AccountPage {
	v := sampleAccount()
	form := func(to string) AccountForm { return AccountForm{to, step} }
	v.Stop, v.You.SignOut = form("/account/stop"), form("/logout")
	at := time.Date(2026, 11, 20, 9, 41, 0, 0, time.UTC)
	who := Say("account.agent", "browser", "Chrome", "system", "Windows")
	v.You.Ways.List, v.You.Ways.RecoveryStep = nil, step
	v.You.Ways.Password = &PasswordWay{URL: "/account/password", Step: step}
	for i := range 10 {
		v.You.Ways.List = append(v.You.Ways.List, Way{
			ID: fmt.Sprintf("way_%022d", i), Name: "Phone of the family", Step: step, Added: at, Used: at,
		})
	}
	v.Apps.AccountForm, v.Apps.Apps = form("/account/connections"), nil
	var servers []ConnectedServer
	for i := range 5 { // the others are behind a link
		servers = append(servers, ConnectedServer{
			ID: fmt.Sprintf("grt_%022d", i), Server: notes, Username: "alice", StaySignedIn: true,
			Given: Event{At: at, Agent: who, From: "203.0.113.0/24"}, FirstUsed: at,
			Used: Event{At: at, From: "198.51.100.0/24"}, LastCall: Call{Tool: "search_notes", At: at},
			Handed: Handed{64, fmt.Sprintf("/account/helpers?grant=grt_%022d", i)},
			Scopes: []Scope{
				{Name: "notes:read", Description: "Read your notes"},
				{Name: "notes:write", Description: "Add and change notes"},
			},
		})
	}
	for _, of := range [][]ConnectedServer{servers[:2], servers[2:4], servers[4:]} {
		v.Apps.Apps = append(v.Apps.Apps, ConnectedApp{
			ID: of[0].ID, Client: claude, SelfRegistered: true, Connections: 12, Servers: of, Several: len(of) > 1,
			Used: at,
		})
	}
	v.Keys.AccountForm, v.Keys.Keys = form("/account/connections"), nil
	for i := range 3 {
		v.Keys.Keys = append(v.Keys.Keys, ProgramKey{
			ID: fmt.Sprintf("grt_1%021d", i), Name: "Report of every night", ClientID: fmt.Sprintf("key_%022d", i),
			Server: notes, Made: Event{At: at, Agent: who, From: "203.0.113.0/24"}, Ends: at,
			Used: Event{At: at, From: "198.51.100.0/24"}, LastCall: Call{Tool: "search_notes", At: at},
			Handed: Handed{64, fmt.Sprintf("/account/helpers?grant=grt_1%021d", i)},
			Scopes: []Scope{
				{Name: "notes:read", Description: "Read your notes"},
				{Name: "notes:write", Description: "Add and change notes"},
			},
		})
	}
	v.SignIns.AccountForm, v.SignIns.SignIns = form("/account/sign-ins"), nil
	for i := range 5 {
		v.SignIns.SignIns = append(v.SignIns.SignIns, SignIn{
			ID: fmt.Sprintf("ses_%022d", i), Here: i == 0, Agent: who, From: "203.0.113.0/24", Begun: at, Seen: at,
		})
	}
	return v
}
