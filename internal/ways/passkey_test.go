package ways_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

func TestPasskeys(t *testing.T) {
	t.Run("a passkey lets its owner in alone, from the browser's own list", func(t *testing.T) {
		r := newRig(t)
		way := r.enrol(r.alice, r.phone)
		r.Advance(time.Hour)
		got, err := r.signIn(r.phone)
		r.must(err)
		if got.User.ID != r.alice.ID || got.Way.ID != way.ID || got.Way.RPID != "auth.example" {
			t.Errorf("got %+v", got)
		}
		all, err := r.List(t.Context(), r.alice.ID)
		r.must(err)
		if len(all) != 1 || !all[0].LastUsedAt.Equal(r.Now()) || all[0].Counter != 1 || !all[0].Works {
			t.Errorf("got %+v", all)
		}
		if strings.Contains(string(all[0].Data), "clientDataJSON") {
			t.Error("the attestation is kept, which was not asked for")
		}
	})
	t.Run("a person has several, and no authenticator twice", func(t *testing.T) {
		r := newRig(t)
		r.enrol(r.alice, r.phone)
		c, err := r.BeginPasskey(t.Context(), here, r.alice)
		r.must(err)
		if _, err := r.phone.Create(c.Options); err == nil {
			t.Error("the authenticator was not told that it is known")
		}
		r.enrol(r.alice, authkit.New(issuer))
		again := r.made(r.person("bob"), authkit.New(issuer))
		_, err = r.FinishPasskey(t.Context(), here, r.alice, "Mine", again)
		wantErr(t, err, ways.ErrOver) // a state that bob began
	})
	t.Run("names are bounded, and hold nothing that reorders what stands around them", func(t *testing.T) {
		r := newRig(t)
		for _, name := range []string{"", "  ", "\u202e", strings.Repeat("x", 65)} {
			_, err := r.FinishPasskey(t.Context(), here, r.alice, name, ways.Answer{})
			wantErr(t, err, ways.ErrName)
		}
		way := r.enrol(r.alice, r.phone)
		_, _, err := r.Rename(t.Context(), r.alice.ID, way.ID, " My\u202e key ")
		r.must(err)
		all, err := r.List(t.Context(), r.alice.ID)
		r.must(err)
		if all[0].Name != "My key" {
			t.Errorf("got %q", all[0].Name)
		}
	})
	t.Run("PE-03 the last one stays", func(t *testing.T) {
		r := newRig(t)
		way := r.enrol(r.alice, r.phone)
		wantErr(t, r.Remove(t.Context(), r.alice.ID, way.ID), storage.ErrLast)
		second := r.enrol(r.alice, authkit.New(issuer))
		r.must(r.Remove(t.Context(), r.alice.ID, second.ID))
		wantErr(t, r.Remove(t.Context(), r.alice.ID, way.ID), storage.ErrLast)
	})
}

// TestPE07Challenges replays, steals, delays and misuses challenges.
func TestPE07Challenges(t *testing.T) {
	signIn := ways.Ask{Purpose: ways.SignIn}
	for name, try := range map[string]func(r *rig) error{
		"replayed": func(r *rig) error {
			a := r.asked(signIn, r.phone)
			_, err := r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			r.must(err)
			_, err = r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			return replayed(err)
		},
		"replayed, by an authenticator that does not count": func(r *rig) error {
			r.phone = authkit.New(issuer)
			r.phone.Counter = 0
			r.enrol(r.alice, r.phone)
			a := r.asked(signIn, r.phone)
			_, err := r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			r.must(err)
			_, err = r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			return err
		},
		"in another browser": func(r *rig) error {
			_, err := r.FinishSignIn(r.t.Context(), there, ways.SignIn, r.asked(signIn, r.phone))
			return err
		},
		"without the mark of a browser": func(r *rig) error {
			c, err := r.BeginSignIn(r.t.Context(), "", signIn)
			r.must(err)
			response, err := r.phone.Get(c.Options)
			r.must(err)
			a := ways.Answer{Sealed: c.Sealed, Response: response}
			_, err = r.FinishSignIn(r.t.Context(), "", ways.SignIn, a)
			return err
		},
		"after five minutes": func(r *rig) error {
			a := r.asked(signIn, r.phone)
			r.Advance(5 * time.Minute)
			_, err := r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			return err
		},
		"for another purpose": func(r *rig) error {
			a := r.asked(ways.Ask{Purpose: ways.Second, UserID: r.alice.ID}, r.phone)
			_, err := r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			return err
		},
		"to enrol, and then to sign in": func(r *rig) error {
			_, err := r.FinishSignIn(r.t.Context(), here, ways.SignIn, r.made(r.alice, authkit.New(issuer)))
			return err
		},
		"changed": func(r *rig) error {
			a := r.asked(signIn, r.phone)
			a.Sealed = "AA" + a.Sealed[2:]
			_, err := r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			return err
		},
		"to enrol twice": func(r *rig) error {
			a := r.made(r.alice, authkit.New(issuer))
			_, err := r.FinishPasskey(r.t.Context(), here, r.alice, "One", a)
			r.must(err)
			_, err = r.FinishPasskey(r.t.Context(), here, r.alice, "Two", a)
			return err
		},
		"to enrol, by another person": func(r *rig) error {
			a := r.made(r.alice, authkit.New(issuer))
			_, err := r.FinishPasskey(r.t.Context(), here, r.person("eve"), "Mine", a)
			return err
		},
		"to enrol, in another browser": func(r *rig) error {
			_, err := r.FinishPasskey(r.t.Context(), there, r.alice, "Mine", r.made(r.alice, authkit.New(issuer)))
			return err
		},
		"to enrol, after five minutes": func(r *rig) error {
			a := r.made(r.alice, authkit.New(issuer))
			r.Advance(5 * time.Minute)
			_, err := r.FinishPasskey(r.t.Context(), here, r.alice, "Late", a)
			return err
		},
	} {
		t.Run("PE-07 "+name, func(t *testing.T) {
			r := newRig(t)
			r.enrol(r.alice, r.phone)
			wantErr(t, try(r), ways.ErrOver)
			if !strings.Contains(name, "enrol") && r.logged(`"reason":"ways: `) == 0 {
				t.Errorf("SP-28: the log does not say why: %s", r.Log.String())
			}
		})
	}
}

// replayed maps the refusal of a replay by the counter, which is checked before the challenge, to
// ErrOver.
func replayed(err error) error {
	if errors.Is(err, ways.ErrRefused) {
		return ways.ErrOver
	}
	return err
}

// TestPE07Answers checks responses of authenticators that must be refused.
func TestPE07Answers(t *testing.T) {
	for name, try := range map[string]func(r *rig) error{
		"without verification of the person": func(r *rig) error {
			r.phone.Verified = false
			_, err := r.signIn(r.phone)
			return err
		},
		"from a page of another origin": func(r *rig) error {
			r.phone.Origin = "https://evil.example"
			_, err := r.signIn(r.phone)
			return err
		},
		"for another relying party": func(r *rig) error {
			r.phone.Passkeys[0].RPID = "evil.example"
			c, err := r.BeginSignIn(r.t.Context(), here, ways.Ask{Purpose: ways.SignIn})
			r.must(err)
			response, err := r.phone.Sign(r.phone.Passkeys[0], challengeOf(r.t, c))
			r.must(err)
			_, err = r.FinishSignIn(r.t.Context(), here, ways.SignIn, ways.Answer{Sealed: c.Sealed, Response: response})
			return err
		},
		"by another person, who is not the one that was asked": func(r *rig) error {
			c, err := r.BeginSignIn(r.t.Context(), here, ways.Ask{Purpose: ways.Proof, UserID: r.alice.ID})
			r.must(err)
			eve := other(r)
			response, err := eve.Sign(eve.Passkeys[0], challengeOf(r.t, c))
			r.must(err)
			_, err = r.FinishSignIn(r.t.Context(), here, ways.Proof, ways.Answer{Sealed: c.Sealed, Response: response})
			return err
		},
		"of a disabled account": func(r *rig) error {
			r.must(r.Store.SetUserDisabled(r.t.Context(), r.alice.ID, true, r.Now()))
			_, err := r.signIn(r.phone)
			return err
		},
		"with the handle of another person": func(r *rig) error {
			r.phone.Passkeys[0].UserHandle = []byte(r.person("bob").ID)
			_, err := r.signIn(r.phone)
			return err
		},
		"without a handle": func(r *rig) error {
			r.phone.Passkeys[0].UserHandle = nil
			_, err := r.signIn(r.phone)
			return err
		},
		"to another challenge": func(r *rig) error {
			a, b := r.asked(ways.Ask{Purpose: ways.SignIn}, r.phone), r.asked(ways.Ask{Purpose: ways.SignIn}, r.phone)
			a.Response = b.Response
			_, err := r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			return err
		},
		"that is too long": func(r *rig) error {
			a := r.asked(ways.Ask{Purpose: ways.SignIn}, r.phone)
			a.Response = append(a.Response, []byte(strings.Repeat(" ", 64<<10))...)
			_, err := r.FinishSignIn(r.t.Context(), here, ways.SignIn, a)
			return err
		},
		"to enrol without verification of the person": func(r *rig) error {
			with := authkit.New(issuer)
			with.Verified = false
			_, err := r.FinishPasskey(r.t.Context(), here, r.alice, "Key", r.made(r.alice, with))
			return err
		},
	} {
		t.Run("PE-07 an answer "+name+" is refused", func(t *testing.T) {
			r := newRig(t)
			r.enrol(r.alice, r.phone)
			wantErr(t, try(r), ways.ErrRefused)
		})
	}
}

// other returns the authenticator of another user.
func other(r *rig) *authkit.Authenticator {
	with := authkit.New(issuer)
	r.enrol(r.person("eve"), with)
	return with
}

func TestPE07Counter(t *testing.T) {
	r := newRig(t)
	way := r.enrol(r.alice, r.phone)
	for range 3 {
		_, err := r.signIn(r.phone)
		r.must(err)
	}
	r.phone.Passkeys[0].Counter = 1 // like a copy of the authenticator
	_, err := r.signIn(r.phone)
	wantErr(t, err, ways.ErrRefused)
	if r.logged(audit.PasskeyCounter) == 0 || r.logged(way.ID) == 0 {
		t.Errorf("it was not reported: %s", r.Log.String())
	}
	r.phone.Passkeys[0].Counter = 3
	_, err = r.signIn(r.phone)
	r.must(err)
}

func TestSecondFactorByPasskey(t *testing.T) {
	r := newRig(t)
	r.enrol(r.alice, r.phone)
	c, err := r.BeginSignIn(t.Context(), here, ways.Ask{Purpose: ways.Second, UserID: r.alice.ID})
	r.must(err)
	if o := optionsOf(t, c); len(o.AllowCredentials) != 1 || o.UserVerification != "preferred" {
		t.Errorf("got %+v", o)
	}
	r.phone.Verified = false // the password was the other factor
	got, err := r.FinishSignIn(t.Context(), here, ways.Second,
		r.asked(ways.Ask{Purpose: ways.Second, UserID: r.alice.ID}, r.phone))
	r.must(err)
	if got.User.ID != r.alice.ID {
		t.Errorf("got %+v", got)
	}
	_, err = r.BeginSignIn(t.Context(), here, ways.Ask{Purpose: ways.Second, UserID: r.person("bob").ID})
	wantErr(t, err, ways.ErrNone)
	for _, ask := range []ways.Ask{{Purpose: ways.Second}, {Purpose: ways.SignIn, UserID: r.alice.ID}} {
		if _, err := r.BeginSignIn(t.Context(), here, ask); err == nil {
			t.Errorf("%+v was begun", ask)
		}
	}
}

// TestPE08Strangers checks that responses to strangers do not depend on the users' methods.
func TestPE08Strangers(t *testing.T) {
	r := newRig(t)
	r.enrol(r.alice, r.phone)
	c, err := r.BeginSignIn(t.Context(), here, ways.Ask{Purpose: ways.SignIn})
	r.must(err)
	if o := optionsOf(t, c); len(o.AllowCredentials) != 0 || o.UserVerification != "required" {
		t.Errorf("got %+v", o)
	}
	way := r.enrol(r.alice, authkit.New(issuer))
	r.must(r.Remove(t.Context(), r.alice.ID, way.ID))
	gone := r.phone
	r.must(r.Store.TakeWay(t.Context(), r.alice.ID, mustList(r)[0].ID))
	_, err = r.signIn(gone)
	var unknown *ways.UnknownPasskeyError
	if !errors.As(err, &unknown) || unknown.RPID != "auth.example" ||
		!slices.Equal(unknown.CredentialID, gone.Passkeys[0].ID) {
		t.Errorf("the authenticator cannot be told: %v", err)
	}
	wantErr(t, err, ways.ErrRefused)
}

func mustList(r *rig) []ways.Listed {
	all, err := r.List(r.t.Context(), r.alice.ID)
	r.must(err)
	return all
}

// TestPE02Hosts changes the host of the issuer.
func TestPE02Hosts(t *testing.T) {
	r := newRig(t)
	current := r.Ways
	r.Ways = r.at("https://old.example")
	old := authkit.New("https://old.example")
	r.enrol(r.alice, old)
	r.Ways = current
	c, err := r.BeginSignIn(t.Context(), here, ways.Ask{Purpose: ways.SignIn})
	r.must(err)
	if _, err := old.Get(c.Options); err == nil {
		t.Error("a passkey of another relying party was offered")
	}
	old.Origin = issuer // the old host has redirected the browser
	for _, ask := range []ways.Ask{
		{Purpose: ways.SignIn, RPID: "old.example"}, {Purpose: ways.Second, UserID: r.alice.ID},
	} {
		got, err := r.FinishSignIn(t.Context(), here, ask.Purpose, r.asked(ask, old))
		r.must(err)
		if got.Way.RPID != "old.example" {
			t.Errorf("got %+v", got.Way)
		}
	}
	_, err = r.BeginSignIn(t.Context(), here, ways.Ask{Purpose: ways.SignIn, RPID: "evil.example"})
	wantErr(t, err, ways.ErrNone)
	if got := current.Site().RelatedOrigins(); !slices.Equal(got, []string{issuer, "https://old.example"}) {
		t.Errorf("related origins: got %v", got)
	}
	lost := r.at("https://new.example")
	all, err := lost.List(t.Context(), r.alice.ID)
	r.must(err)
	if all[0].Works {
		t.Error("it works where its host is not served")
	}
	accepted, err := current.Accepted(t.Context(), r.alice.ID)
	r.must(err)
	if len(accepted) != 2 || len(accepted[0].AllAcceptedCredentialIDs) != 0 ||
		len(accepted[1].AllAcceptedCredentialIDs) != 1 {
		t.Errorf("got %+v", accepted)
	}
}
