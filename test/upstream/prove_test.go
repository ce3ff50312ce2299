package upstream

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// age makes every session older.
func (i *installation) age(t *testing.T, by time.Duration) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(i.data, "mcp-authd.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE sessions SET auth_time = auth_time - ?1, created_at = created_at - ?1,
		proved_at = proved_at - ?1`, by.Milliseconds()); err != nil {
		t.Fatal(err)
	}
}

// TestProofAtAProvider: PE-04, a user who signs in only through providers must prove their identity
// there before an account is linked or unlinked. The session of node-oidc-provider would otherwise
// send the browser back without a question.
func TestProofAtAProvider(t *testing.T) {
	lane.Long(t, "thirdparty tests proofs")
	t.Parallel()
	i := plan(t)
	node := i.node("node", idptest.Options{Host: "127.0.0.2"}, // the first provider on the page
		map[string]any{"check_every": "1h"}) // a new sign-in ends older tokens of node, which a check would detect
	i.dex("dex", idptest.Options{}, nil)
	i.start()
	alice, a := newPerson(t, idptest.Alice), newApp(t)
	id := i.register(t, "An application", a.redirect())
	alice.visit(t, i.link(id, a.redirect(), "provider", "node"))
	connected := func(p page) (n int) { // accounts that can be unlinked: all but the last
		for _, l := range p.Links {
			if strings.HasPrefix(l, "Unlink") {
				n++
			}
		}
		return n
	}
	disconnected := func() int { return strings.Count(i.log.String(), `"what":"account-disconnected"`) }
	press := func(t *testing.T, selector string) page {
		t.Helper()
		alice.glance(t, i.issuer+"/account")
		shown, err := alice.press(selector)
		if err != nil {
			t.Fatal(err)
		}
		return shown
	}
	const depart, disconnect = "form[action$='/depart'] button", "form[action$='/disconnect'] button"
	// proves completes the page that asks for a proof.
	proves := func(t *testing.T, shown page) {
		t.Helper()
		if !strings.Contains(shown.URL, i.place+"/prove") {
			t.Fatalf("no proof is asked for: %s\n%s", shown.URL, shown.Text)
		}
		shown, err := alice.press(depart)
		if err != nil {
			t.Fatal(err)
		}
		if !shown.Login || !strings.Contains(shown.URL, hostOf(node.Issuer)) {
			t.Fatalf("the provider does not ask who the person is: %s\n%s", shown.URL, shown.Text)
		}
		if shown, err = alice.goOn(shown); err != nil || !strings.HasPrefix(shown.URL, i.issuer+"/account") {
			t.Fatalf("not at the account: %v %s\n%s", err, shown.URL, shown.Text)
		}
	}

	i.age(t, 6*time.Minute)
	t.Run("before an account is connected", func(t *testing.T) {
		proves(t, press(t, depart))
		shown, err := alice.goOn(press(t, depart))
		if err != nil || connected(shown) != 1 {
			t.Fatalf("after the proof: %v, %d accounts\n%s", err, connected(shown), shown.Text)
		}
	})
	if t.Failed() {
		return
	}
	i.age(t, 6*time.Minute)
	t.Run("before one is disconnected", func(t *testing.T) {
		shown := press(t, disconnect)
		if disconnected() != 0 {
			t.Fatal("an old session disconnects an account")
		}
		proves(t, shown)
		if press(t, disconnect); disconnected() != 1 {
			t.Errorf("after the proof %d are disconnected", disconnected())
		}
	})
}
