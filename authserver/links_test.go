package authserver

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

const newPassword = "a new horse battery"

// TestPE16AnInvitationMakesOneAccount checks that opening an invitation does not use it up, and its
// form uses it up once.
func TestPE16AnInvitationMakesOneAccount(t *testing.T) {
	r := newRig(t)
	made, err := r.users.Invite(t.Context(), r.as.Issuer, users.Invitation{Name: "berta", Mail: "b@a.example"})
	if err != nil {
		t.Fatal(err)
	}
	p, path := r.person(), pathOf(t, made.URL)
	for range 3 {
		if pg := p.get(path); pg.status != 200 || !strings.Contains(pg.body, "berta") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
	}
	step := p.get(path).step(t)
	for password, want := range map[string]string{"short": "at least 8 characters", "password123": "most common"} {
		if pg := p.post(path, passwordForm(step, password)); pg.status != 400 || !strings.Contains(pg.body, want) {
			t.Errorf("%q: got %d %s", password, pg.status, pg.body)
		}
	}
	other := r.person()
	if pg := other.post(path, passwordForm(step, newPassword)); pg.status == 200 {
		t.Errorf("the form of another browser: got %d", pg.status)
	}
	if pg := p.post(path, passwordForm(step, newPassword), "Sec-Fetch-Site", "cross-site"); pg.status != 403 {
		t.Errorf("from another site: got %d", pg.status)
	}
	if pg := p.post(path, passwordForm(step, newPassword)); pg.status != 200 {
		t.Fatalf("got %d %s", pg.status, pg.body)
	}
	if u, err := r.Users().Find(t.Context(), "berta"); err != nil || u.Mail != "b@a.example" || u.Role != "" {
		t.Errorf("got %+v, %v", u, err)
	}
	used := p.post(path, passwordForm(step, newPassword))
	unknown := p.get("/link/mcplk_none")
	if used.status != 404 || used.status != unknown.status || used.body != unknown.body ||
		used.body != p.get(path).body {
		t.Errorf("PE-08: a used link is not answered as an unknown one: %d, %d", used.status, unknown.status)
	}
	if strings.Contains(r.log.String(), strings.TrimPrefix(path, "/link/")) {
		t.Error("the token is in the log")
	}
}

// TestPE16ALinkEndsAndIsReplaced checks that a link ends with time, with a newer link, and with its
// user.
func TestPE16ALinkEndsAndIsReplaced(t *testing.T) {
	r := newRig(t)
	p := r.person()
	recover := func() string {
		t.Helper()
		made, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return pathOf(t, made.URL)
	}
	first, second := recover(), recover()
	if got := p.get(first).status; got != 404 {
		t.Errorf("replaced: got %d", got)
	}
	step := p.get(second).step(t)
	r.advance(time.Hour)
	if got := p.post(second, passwordForm(step, newPassword)).status; got == 200 {
		t.Errorf("expired: got %d", got)
	}
	third := recover()
	step = p.get(third).step(t)
	if err := r.Users().Disable(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	if got := p.post(third, passwordForm(step, newPassword)).status; got != 404 {
		t.Errorf("of a disabled account: got %d", got)
	}
	if _, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{}); err != users.ErrDisabled {
		t.Errorf("got %v, want ErrDisabled", err)
	}
}

// PE-13: a notice that was stored before mails had languages is shown without its English words.
func TestNoticeWithEnglishWords(t *testing.T) {
	r := newRig(t)
	p := r.alice()
	u, err := r.store.UserByName(t.Context(), "alice")
	if err == nil {
		err = r.store.PutNotice(t.Context(), storage.Notice{
			ID: "ntc_1", UserID: u.ID, Kind: string(notice.RecoverLinkMade), Detail: "good from 2026-11-22 09:00 UTC",
			At: r.now(),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	p.post("/language", url.Values{"language": {"de"}, "back": {"/account"}})
	pg := p.get("/account")
	pg.has(t, http.StatusOK, "Wiederherstellungslink")
	if strings.Contains(pg.body, "good from") || !strings.Contains(pg.body, ">22. November 2026, 09:00 Uhr UTC</time>") {
		t.Errorf("got %.2000s", pg.body)
	}
}

// TestPE06ARecoveryWaitsWhereThereAreOtherWays checks that a recovery waits if the user has other
// methods, that the user can stop it, and that it ends every session.
func TestPE06ARecoveryWaitsWhereThereAreOtherWays(t *testing.T) {
	m := &letters{}
	r := newRig(t, func(c *Config) { c.Mailer = m })
	alice, err := r.Users().Find(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.users.SetMail(t.Context(), "alice", "alice@example.com"); err != nil {
		t.Fatal(err)
	}
	signedIn := r.person()
	signedIn.signIn()
	if err := r.store.ReplaceRecoveryCodes(t.Context(), alice.ID, []storage.Hash{{1}}, storage.Hash{}); err != nil {
		t.Fatal(err)
	}
	_, err = r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{Now: true})
	if err != users.ErrOtherWays {
		t.Errorf("at once: got %v, want ErrOtherWays", err)
	}
	made, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, path := r.person(), pathOf(t, made.URL)
	if pg := p.get(path); pg.status != 403 || !strings.Contains(pg.body, "not valid yet") {
		t.Errorf("early: got %d %s", pg.status, pg.body)
	}
	stop := pathOf(t, m.await(t, "A recovery link was made"))
	if link := pathOf(t, m.await(t, "Get back into your account")); link != path {
		t.Errorf("the mail has %s, want %s", link, path)
	}
	page := p.get(stop)
	if page.status != 200 || p.get(path).status != 403 {
		t.Fatalf("to look at what stops it has stopped it: %d", page.status)
	}
	if pg := p.post(stop, url.Values{"step": {page.step(t)}}); pg.status != 200 {
		t.Fatalf("got %d %s", pg.status, pg.body)
	}
	if a, b := p.get(path).status, p.get(stop).status; a != 404 || b != 404 {
		t.Errorf("stopped: got %d, %d", a, b)
	}
	if made, err = r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{}); err != nil {
		t.Fatal(err)
	}
	notices := signedIn.get("/account/notices")
	if !strings.Contains(notices.body, "A recovery link was made") || !strings.Contains(notices.body, `value="stop"`) {
		t.Fatalf("the person is not told: %s", notices.body)
	}
	act := url.Values{"step": {notices.step(t)}, "act": {"stop"}}
	if got := r.person().post("/account/notices", act).status; got == 303 {
		t.Error("another browser stopped it")
	}
	if got := signedIn.post("/account/notices", act).status; got != 303 || p.get(pathOf(t, made.URL)).status != 404 {
		t.Errorf("to stop it: got %d", got)
	}
	act.Set("act", "seen")
	signedIn.post("/account/notices", act)
	if strings.Contains(signedIn.get("/account/notices").body, "A recovery link was made") {
		t.Error("a seen notice is shown again")
	}
	if made, err = r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{}); err != nil {
		t.Fatal(err)
	}
	r.advance(users.DefaultLinkPolicy().RecoverDelay)
	if path = pathOf(t, made.URL); p.post(path, passwordForm(p.get(path).step(t), newPassword)).status != 200 {
		t.Fatal("after the delay it is refused")
	}
	n, err := r.store.UnseenNotices(t.Context(), alice.ID)
	if err != nil || len(n) != 3 || n[0].Kind != "recovery-used" || n[2].Kind != "recovery-stopped" {
		t.Errorf("the notices are %v, %v", n, err)
	}
	if body := signedIn.get("/").body; strings.Contains(body, "alice") {
		t.Error("an earlier session lives")
	}
}

// TestPE08ForgottenAnswersAlike checks that the response does not depend on the account, and that
// the link works in the requesting browser only.
func TestPE08ForgottenAnswersAlike(t *testing.T) {
	m := &letters{}
	r := newRig(t, func(c *Config) { c.Mailer = m })
	if err := r.users.SetMail(t.Context(), "alice", "alice@example.com"); err != nil {
		t.Fatal(err)
	}
	p := r.person()
	if !strings.Contains(p.get("/login").body, "/login/forgotten") {
		t.Error("the sign-in page does not lead there")
	}
	ask := func(name string) page {
		return p.post("/login/forgotten", url.Values{"step": {p.get("/login/forgotten").step(t)}, "username": {name}})
	}
	known, unknown := ask("alice"), ask("nobody")
	if known.status != 200 || known.body != unknown.body || known.status != unknown.status {
		t.Errorf("got %d and %d, %s", known.status, unknown.status, known.body)
	}
	path := pathOf(t, m.await(t, "Choose a new password"))
	if pg := r.person().get(path); pg.status != 403 || !strings.Contains(pg.body, "other browser") {
		t.Errorf("in another browser: got %d %s", pg.status, pg.body)
	}
	if pg := p.post(path, passwordForm(p.get(path).step(t), newPassword)); pg.status != 200 {
		t.Errorf("got %d %s", pg.status, pg.body)
	}
	for range 20 {
		ask("alice")
	}
	if n := m.count("Choose a new password"); n > storage.MaxResets {
		t.Errorf("got %d letters", n)
	}
	r = newRig(t)
	if got := r.person().get("/login/forgotten").status; got != 404 {
		t.Errorf("without mail: got %d", got)
	}
}

// TestForgottenIsLeftToItsPerson checks that a stranger who requests links for a user without
// opening them does not use up the user's limit (PE-06). All replicas count together.
func TestForgottenIsLeftToItsPerson(t *testing.T) {
	m := &letters{}
	r := newRig(t, func(c *Config) {
		c.Mailer, c.TrustedProxies = m, TrustedProxies{netip.MustParsePrefix("127.0.0.0/8")}
	})
	if err := r.users.SetMail(t.Context(), "alice", "alice@example.com"); err != nil {
		t.Fatal(err)
	}
	asked := 0
	ask := func(p *person, from string) {
		t.Helper()
		step := p.get("/login/forgotten").step(t)
		p.post("/login/forgotten", url.Values{"step": {step}, "username": {"Alice"}}, "X-Forwarded-For", from)
		asked++
		wait.Success(t, "the letter is sent or refused", func() error {
			done := m.count("Choose a new password") + strings.Count(r.log.String(), "too many were asked for")
			if done < asked {
				return fmt.Errorf("%d of %d ended", done, asked)
			}
			return nil
		})
	}
	known := r.alice()
	for i := range 6 {
		if i == 3 {
			r.restart() // another replica
		}
		ask(r.person(), "203.0.113.200")
	}
	if n := m.count("Choose a new password"); n != 3 {
		t.Errorf("a stranger got %d letters sent, want 3", n)
	}
	ask(r.person(), "198.51.100.7")
	ask(known, "203.0.113.200")
	if n := m.count("Choose a new password"); n != 5 {
		t.Errorf("another network, and a known browser in the stranger's network: %d letters, want 5", n)
	}
	for i := range 30 {
		ask(r.person(), fmt.Sprintf("192.0.%d.1", i))
	}
	if n := m.count("Choose a new password"); n != 21 { // 20 for strangers, who had 4 before
		t.Errorf("got %d letters, want no more than 20 for strangers", n)
	}
	ask(known, "203.0.113.200")
	if n := m.count("Choose a new password"); n != 22 {
		t.Errorf("in a known browser: got %d letters, want 22", n)
	}
	r.advance(users.DefaultLinkPolicy().ResetTTL)
	ask(r.person(), "203.0.113.200")
	if n := m.count("Choose a new password"); n != 23 {
		t.Errorf("later: got %d letters, want 23", n)
	}
}

// TestLinkPolicy checks that links live as configured, and that their pages and mails state the
// time (PE-16).
func TestLinkPolicy(t *testing.T) {
	m := &letters{}
	r := newRig(t, func(c *Config) {
		c.Mailer = m
		c.SignIn.Links = LinkPolicy{
			InviteTTL: 2 * time.Hour, RecoverTTL: 3 * time.Hour, ResetTTL: 4 * time.Minute, RecoverDelay: 5 * time.Hour,
		}
	})
	alice, err := r.Users().Find(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.users.SetMail(t.Context(), "alice", "alice@example.com"); err != nil {
		t.Fatal(err)
	}
	if err := r.store.ReplaceRecoveryCodes(t.Context(), alice.ID, []storage.Hash{{1}}, storage.Hash{}); err != nil {
		t.Fatal(err)
	}
	p := r.person()
	made, err := r.users.Invite(t.Context(), r.as.Issuer, users.Invitation{Name: "berta"})
	if err != nil || !made.ExpiresAt.Equal(r.now().Add(2*time.Hour)) {
		t.Errorf("an invitation: got %v %v", made.ExpiresAt, err)
	}
	p.get(pathOf(t, made.URL)).has(t, 200, "until <bdi>21 November 2026, 14:00 UTC")
	recover := func(wait time.Duration) string {
		made, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{})
		from := r.now().Add(wait)
		if err != nil || !made.NotBefore.Equal(from) || !made.ExpiresAt.Equal(from.Add(3*time.Hour)) {
			t.Errorf("a recovery: got %v to %v, %v", made.NotBefore, made.ExpiresAt, err)
		}
		return pathOf(t, made.URL)
	}
	path := recover(5 * time.Hour)
	p.get(path).has(t, 403, "from <bdi>21 November 2026, 17:00 UTC")
	r.advance(5 * time.Hour)
	p.get(path).has(t, 200, "until <bdi>21 November 2026, 20:00 UTC")

	form := url.Values{"step": {p.get("/login/forgotten").step(t)}, "username": {"alice"}}
	p.post("/login/forgotten", form).has(t, 200, "until <bdi>21 November 2026, 17:04 UTC")
	path = pathOf(t, m.await(t, "Choose a new password"))
	p.get(path).has(t, 200, "until <bdi>21 November 2026, 17:04 UTC")
	r.advance(4 * time.Minute)
	p.get(path).has(t, 404, "no longer valid")

	r.restart(func(c *Config) { c.SignIn.Links.RecoverDelay = -1 })
	p.get(recover(0)).has(t, 200, "Set the password")

	for _, wrong := range []LinkPolicy{
		{InviteTTL: 31 * 24 * time.Hour}, {RecoverTTL: time.Second}, {ResetTTL: -1},
		{RecoverDelay: 31 * 24 * time.Hour},
	} {
		c := r.as
		c.SignIn.Links = wrong
		if _, err := Assemble(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is not between") {
			t.Errorf("%+v: got %v", wrong, err)
		}
	}
}

func passwordForm(step, password string) url.Values {
	return url.Values{"step": {step}, "password": {password}}
}

func pathOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(u.Path, "/link/mcplk_") {
		t.Fatalf("%q is no link", link)
	}
	return u.Path
}

// letters is a mail server for tests.
type letters struct {
	mu   sync.Mutex
	sent map[string][]string // links by subject
}

var linkInText = regexp.MustCompile(`http://\S+/link/\S+`)

func (l *letters) Send(_ context.Context, to, subject, text, _ string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == nil {
		l.sent = map[string][]string{}
	}
	_, subject, _ = strings.Cut(subject, ": ")
	l.sent[subject] = append(l.sent[subject], linkInText.FindString(text))
	return nil
}

func (l *letters) count(subject string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sent[subject])
}

// await waits for a mail and returns the link in the last one.
func (l *letters) await(t *testing.T, subject string) string {
	t.Helper()
	wait.Until(t, fmt.Sprintf("the letter %q is sent", subject), func() bool { return l.count(subject) > 0 })
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent[subject][len(l.sent[subject])-1]
}

// PE-06: a recovery leaves another user signed in in the browser of its link.
func TestRecoveryLeavesOthersSignedIn(t *testing.T) {
	r := newRig(t)
	if _, err := r.users.Create(t.Context(), "bob", bobsPassword, false); err != nil {
		t.Fatal(err)
	}
	recover := func(p *person) {
		made, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		path := pathOf(t, made.URL)
		p.post(path, passwordForm(p.get(path).step(t), newPassword)).has(t, http.StatusOK, "")
	}
	bob, alice := r.person(), r.alice()
	bob.signInAs(bob.get("/login"), "bob", bobsPassword)
	recover(bob)
	if !bob.signedInAs("bob") {
		t.Error("bob's browser has lost his session, which no page can end any more")
	}
	recover(alice)
	if sessionCookie(alice) != "" {
		t.Error("the session that has ended is still in the browser")
	}
}
