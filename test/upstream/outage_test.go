package upstream

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestOutage: the provider is unreachable during a sign-in, and while a user is signed in.
func TestOutage(t *testing.T) {
	lane.Long(t, "thirdparty tests outages of a provider")
	t.Parallel()
	i := plan(t)
	up := i.node("node", idptest.Options{TokenTTL: 30 * time.Second}, nil)
	up.Down() // before the server reads its metadata
	i.start()
	a, alice := newApp(t), newPerson(t, idptest.Alice)
	id := i.register(t, "An application", a.redirect())
	link := i.link(id, a.redirect())

	t.Run("AS-223 the person sees what happened, and can go back: the client gets an OAuth error", func(t *testing.T) {
		shown := alice.see(t, link)
		if shown.Back || !strings.Contains(shown.Text, up.Kind+" could not be reached") {
			t.Fatalf("the browser shows %s:\n%s", shown.URL, shown.Text)
		}
		alice.Advance(time.Minute)
		a.quiet(t) // the page stays open
		if shown, err := alice.press("a[rel=noreferrer]"); err != nil || !shown.Back {
			t.Fatalf("the browser shows %+v, %v", shown, err)
		}
		checkUnavailable(t, i, a)
	})
	t.Run("AS-223 a client that is no browser is sent back at once", func(t *testing.T) {
		back, err := idptest.NewPerson(idptest.Alice).Visit(link, a.URL)
		if err != nil {
			t.Fatal(err)
		}
		if q := back.Query(); q.Get("error") != "temporarily_unavailable" || q.Get("state") != "s" ||
			q.Get("iss") != i.issuer || q.Has("code") {
			t.Errorf("got %s", back)
		}
	})
	var g grant
	t.Run("AS-223 it is back, and trying again works", func(t *testing.T) {
		shown := alice.see(t, link)
		up.Up(t)
		// The provider is not contacted at each attempt.
		wait.Success(t, "a further attempt leads to the application", func() error {
			if shown.Back {
				return nil
			}
			var err error
			if shown, err = alice.press("a.primary"); err == nil {
				shown, err = alice.goOn(shown)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !shown.Back {
				return fmt.Errorf("the browser shows %s:\n%s", shown.URL, shown.Text)
			}
			return nil
		})
		g = i.redeem(t, id, a.redirect(), a.answer(t).Get("code"))
	})
	if t.Failed() {
		return
	}
	t.Run("AS-219 an outage ends nothing", func(t *testing.T) {
		failed := func() int { return strings.Count(i.log.String(), `"msg":"provider cannot be reached"`) }
		before := failed()
		up.Down()
		wait.Until(t, "the provider was asked in vain twice", func() bool {
			enough := failed() >= before+2
			i.lives(t, g.access)
			if status, active := i.introspect(t, i.issuer, g.access); status != http.StatusOK || !active {
				t.Fatalf("introspection: got %d, active: %t", status, active)
			}
			return enough
		})
		if status, out := g.refreshed(t, i.issuer); status != http.StatusOK {
			t.Errorf("refresh: got %d %v", status, out)
		}
	})
	t.Run("AS-218 and when it is over the provider's word counts again", func(t *testing.T) {
		up.Up(t)
		up.Revoke(t, idptest.Alice)
		i.dies(t, g.access)
	})
}

func checkUnavailable(t *testing.T, i *installation, a *app) {
	t.Helper()
	if q := a.answer(t); q.Get("error") != "temporarily_unavailable" || q.Get("state") != "s" ||
		q.Get("iss") != i.issuer || q.Get("error_description") == "" || q.Has("code") {
		t.Errorf("got %v", q)
	}
}

// TestDeclined: the user refuses, here or at the provider.
func TestDeclined(t *testing.T) {
	t.Parallel()
	i := plan(t)
	up := i.node("node", idptest.Options{}, nil)
	i.start()
	a, bob := newApp(t), newPerson(t, idptest.Bob)
	id := i.register(t, "An application", a.redirect())
	for _, where := range []string{"mcp-authd", "provider"} {
		t.Run("AS-223 at the "+where, func(t *testing.T) {
			bob.refuses = where
			bob.visit(t, i.link(id, a.redirect()))
			if q := a.answer(t); q.Get("error") != "access_denied" || q.Get("state") != "s" ||
				q.Get("iss") != i.issuer || q.Has("code") {
				t.Errorf("got %v", q)
			}
			if want := map[string]int{"mcp-authd": 0, "provider": 1}[where]; asked(up) != want {
				t.Errorf("the provider was asked %d times, want %d", asked(up), want)
			}
		})
	}
	if i.events("provider.signed_in") != 0 {
		t.Error("a person was signed in")
	}
}
