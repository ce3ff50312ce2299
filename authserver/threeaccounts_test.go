package authserver

import (
	"net/url"
	"slices"
	"testing"
	"time"
)

// AS-239 PE-08: if one of three accounts in a browser has ended, the other two are offered, and the
// client learns of none.
func TestAccountsInOneBrowser(t *testing.T) {
	r := twoPeople(t)
	if _, err := r.Users().Create(t.Context(), "carol", bobsPassword, false); err != nil {
		t.Fatal(err)
	}
	p := r.person()
	ask := func(change ...string) page { return p.get("/authorize?" + authorizeQuery(change...).Encode()) }
	shown := p.login(authorizeQuery())
	for _, name := range []string{"bob", "carol"} {
		another := linkTo(t, p.get(linkTo(t, shown, "select_account")), "account=another")
		shown = p.signInAs(p.get(another), name, bobsPassword)
	}
	want := func(what string, pg page, names ...string) {
		t.Helper()
		got := accounts(pg)
		if len(got) != len(names) || slices.ContainsFunc(names, func(n string) bool { return got[n] == "" }) {
			t.Errorf("%s: got %v, want %v", what, got, names)
		}
	}
	open := ask("prompt", "select_account")
	want("three", open, "alice", "bob", "carol")

	u, err := r.store.UserByName(t.Context(), "bob")
	if err == nil {
		err = r.store.StopEverything(t.Context(), u.ID, r.now())
	}
	if err != nil {
		t.Fatal(err)
	}
	want("one has ended", ask("prompt", "select_account"), "alice", "carol")
	for _, hint := range []string{"bob", "alice", "nobody"} { // the same for all
		want("a hint of "+hint, ask("login_hint", hint), "alice", "carol")
		if got := responseOf(t, ask("login_hint", hint, "prompt", "none", "client_id", "static")); got.Get(
			"error") != "login_required" {
			t.Errorf("prompt=none with a hint of %s: got %v", hint, got)
		}
	}
	if pg := ask("login_hint", "CAROL"); !pg.asks("carol") {
		t.Errorf("the current one: got %d %.600s", pg.status, pg.body)
	}
	// The old page offers the session that has ended. It signs in no user, and restores none.
	to := p.post("/choose", url.Values{"step": {accounts(open)["bob"]}}).header.Get("Location")
	pg := p.get(to)
	if pg.asks("bob") || pg.asks("alice") || pg.asks("carol") {
		t.Fatalf("an ended session was chosen: %d %.600s", pg.status, pg.body)
	}
	p.advance(time.Millisecond) // the new session must be later than the ended ones
	p.signInAs(pg, "bob", bobsPassword)
	want("bob is back", ask("prompt", "select_account"), "alice", "bob", "carol")
}
