package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// withPasskey uses the link of a path with a new passkey of the authenticator.
func (p *person) withPasskey(path string, a *authkit.Authenticator) page {
	p.t.Helper()
	step, options := p.get(path).asked(p.t)
	made, err := a.Create(options)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.post(path, url.Values{"step": {step}, "credential": {string(made)}})
}

// byPasskey signs in with only a passkey.
func (p *person) byPasskey(a *authkit.Authenticator) page {
	p.t.Helper()
	return p.post("/login/passkey", p.answered(p.get("/login"), a))
}

// TestPE16ALinkMakesAPasskey checks that a user without a password signs in, and recovers the
// account, with a passkey.
func TestPE16ALinkMakesAPasskey(t *testing.T) {
	t.Run("recovery: it replaces the password, and ends sessions and grants", func(t *testing.T) {
		r := newRig(t, named)
		before := r.person()
		token := before.signIn()
		made, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, path, key := r.person(), pathOf(t, made.URL), r.authenticator()
		if pg := p.withPasskey(path, key); pg.status != 200 || !strings.Contains(pg.body, "Your passkey is set") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		if pg := p.get(path); pg.status != 404 {
			t.Errorf("a second time: got %d", pg.status)
		}
		if status, _ := before.token(refreshForm(token["refresh_token"])); status == 200 {
			t.Error("an earlier grant is live")
		}
		if body := before.get("/").body; strings.Contains(body, "alice") {
			t.Error("an earlier session is live")
		}
		r.advance(time.Second)
		if pg := r.person().enter(); pg.status == http.StatusSeeOther {
			t.Error("the earlier password works")
		}
		if pg := p.byPasskey(key); pg.status != http.StatusSeeOther {
			t.Errorf("the passkey does not let in: %d %.300s", pg.status, pg.body)
		}
	})
	t.Run("invitation, where passwords do not sign in", func(t *testing.T) {
		r, _ := delegated(t, named, func(c *Config) { c.NoLocalLogin = true })
		made, err := r.users.Invite(t.Context(), r.as.Issuer, users.Invitation{Name: "berta"})
		if err != nil {
			t.Fatal(err)
		}
		p, path, key := r.person(), pathOf(t, made.URL), r.authenticator()
		pg := p.get(path)
		if strings.Contains(pg.body, `name="password"`) {
			t.Error("the page asks for a password, which does not sign in")
		}
		if pg := p.post(path, passwordForm(pg.step(t), newPassword)); pg.status != 400 {
			t.Errorf("a password: got %d", pg.status)
		}
		if pg := p.withPasskey(path, key); pg.status != 200 {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		if pg := p.byPasskey(key); pg.status != http.StatusSeeOther {
			t.Errorf("the passkey does not let in: %d %.300s", pg.status, pg.body)
		}
	})
	t.Run("a link that was asked for by mail makes none, which would get past a second factor", func(t *testing.T) {
		m := &letters{}
		r := newRig(t, named, func(c *Config) { c.Mailer = m })
		if err := r.users.SetMail(t.Context(), "alice", "alice@example.com"); err != nil {
			t.Fatal(err)
		}
		p, key := r.person(), r.authenticator()
		form := url.Values{"step": {p.get("/login/forgotten").step(t)}, "username": {"alice"}}
		p.post("/login/forgotten", form)
		path := pathOf(t, m.await(t, "Choose a new password"))
		pg := p.get(path)
		if strings.Contains(pg.body, "data-passkey") {
			t.Error("the page asks for a passkey")
		}
		// A passkey that was requested elsewhere in the same browser.
		invited, err := r.users.Invite(t.Context(), r.as.Issuer, users.Invitation{Name: "berta"})
		if err != nil {
			t.Fatal(err)
		}
		_, options := p.get(pathOf(t, invited.URL)).asked(t)
		made, err := key.Create(options)
		if err != nil {
			t.Fatal(err)
		}
		form = url.Values{"step": {pg.step(t)}, "credential": {string(made)}}
		p.post(path, form).has(t, 400, "neither a password nor a passkey")
		alice, err := r.users.Find(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		reset := storage.OneTimeLink{
			Hash: secrets.Hash("mcplk_any"), Kind: storage.LinkReset, UserID: alice.ID,
			NotBefore: r.now(), ExpiresAt: r.now().Add(time.Hour), CreatedAt: r.now(),
		}
		if err := r.store.PutLink(t.Context(), reset, r.now()); err != nil {
			t.Fatal(err)
		}
		way := storage.Way{
			ID: "way_1", UserID: alice.ID, Kind: storage.Passkey, CredentialID: []byte{1}, CreatedAt: r.now(),
		}
		if _, err := r.users.UseLink(t.Context(), "mcplk_any", users.LinkUse{Passkey: &way}); err != users.ErrLink {
			t.Errorf("behind the page: got %v, want ErrLink", err)
		}
		if pg := p.post(path, passwordForm(pg.step(t), newPassword)); pg.status != 200 {
			t.Errorf("the password: got %d %.300s", pg.status, pg.body)
		}
	})
	t.Run("a form without either is told what is missing, and spends nothing", func(t *testing.T) {
		r := newRig(t, named)
		made, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, path := r.person(), pathOf(t, made.URL)
		for _, c := range []struct {
			form url.Values
			want string
		}{
			{url.Values{}, "neither a password nor a passkey"},
			{url.Values{"credential": {""}}, "need JavaScript"},
			{url.Values{"password": {""}}, "at least 8 characters"},
		} {
			c.form.Set("step", p.get(path).step(t))
			p.post(path, c.form).has(t, 400, c.want)
		}
		p.get(path).has(t, 200, "Create a passkey")
	})
	t.Run("the passkey is for the person of the link, and of the browser", func(t *testing.T) {
		r := newRig(t, named)
		made, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, path, key := r.person(), pathOf(t, made.URL), r.authenticator()
		step, _ := p.get(path).asked(t)
		_, options := r.person().get(path).asked(t)
		other, err := key.Create(options)
		if err != nil {
			t.Fatal(err)
		}
		pg := p.post(path, url.Values{"step": {step}, "credential": {string(other)}})
		if pg.status != 400 {
			t.Errorf("PE-07: a passkey that another browser was asked for: got %d", pg.status)
		}
		alice, _ := r.store.UserByName(t.Context(), "alice")
		if all, err := r.store.Ways(t.Context(), alice.ID); err != nil || len(all) > 0 {
			t.Errorf("got %v %v", all, err)
		}
		if _, err := r.store.RecoveryLink(t.Context(), alice.ID, r.now()); err == storage.ErrNotFound {
			t.Error("the link is spent")
		}
	})
}
