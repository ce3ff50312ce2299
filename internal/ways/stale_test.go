package ways_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// TestStaleEnrolments: PE-07, an enrollment form that is late, repeated or foreign is logged with
// the reason, like such a sign-in.
func TestStaleEnrolments(t *testing.T) {
	r := newRig(t)
	logged := func(t *testing.T, kind, why string, add func() error, want error) {
		t.Helper()
		r.Log.Reset()
		wantErr(t, add(), want)
		for _, text := range []string{`"way.refused"`, `"kind":"` + kind + `"`, why, `"user_name":"alice"`} {
			if !strings.Contains(r.Log.String(), text) {
				t.Errorf("the log does not have %s: %s", text, r.Log)
			}
		}
	}
	passkey := func(browser string, a ways.Answer) func() error {
		return func() error {
			_, err := r.FinishPasskey(t.Context(), browser, r.alice, "Phone", a)
			return err
		}
	}
	app := func(browser string, n ways.NewApp) func() error {
		return func() error {
			_, err := r.FinishApp(t.Context(), browser, r.alice, "Phone", n.Sealed, r.code(n.Secret, 0))
			return err
		}
	}
	newApp := func() ways.NewApp {
		n, err := r.BeginApp(here, r.alice)
		r.must(err)
		return n
	}
	a := r.made(r.alice, r.phone)
	logged(t, "passkey", "another browser", passkey(there, a), ways.ErrOver)
	r.must(passkey(here, a)())
	logged(t, "passkey", "answered before", passkey(here, a), ways.ErrOver)
	rejected := r.made(r.alice, authkit.New("https://elsewhere.example"))
	logged(t, "passkey", "not accepted", passkey(here, rejected), ways.ErrRefused)
	late, lateApp := r.made(r.alice, authkit.New(issuer)), newApp()
	n := newApp()
	logged(t, "app", "another browser", app(there, n), ways.ErrOver)
	r.must(app(here, n)())
	logged(t, "app", "answered before", app(here, n), ways.ErrOver)
	r.Advance(time.Hour)
	logged(t, "passkey", "begin again", passkey(here, late), ways.ErrOver)
	logged(t, "app", "begin again", app(here, lateApp), ways.ErrOver)
}
