package ways_test

import (
	"errors"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// FuzzAnswers checks that answers from a browser are either correct or refused.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"id":"AA","rawId":"AA","type":"public-key","response":{}}`))
	f.Add([]byte(`[]`))
	r := newRig(f) // shared by all runs
	r.enrol(r.alice, r.phone)
	f.Fuzz(func(t *testing.T, response []byte) {
		signIn, err := r.BeginSignIn(t.Context(), here, ways.Ask{Purpose: ways.SignIn})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.FinishSignIn(t.Context(), here, ways.SignIn, ways.Answer{Sealed: signIn.Sealed, Response: response})
		if !errors.Is(err, ways.ErrRefused) {
			t.Errorf("sign-in: got %v", err)
		}
		enrol, err := r.BeginPasskey(t.Context(), here, r.alice)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.FinishPasskey(t.Context(), here, r.alice, "x", ways.Answer{Sealed: enrol.Sealed, Response: response})
		if !errors.Is(err, ways.ErrRefused) {
			t.Errorf("enrolment: got %v", err)
		}
		_, err = r.FinishSignIn(t.Context(), here, ways.SignIn, ways.Answer{Sealed: string(response)})
		if !errors.Is(err, ways.ErrOver) {
			t.Errorf("sealed: got %v", err)
		}
	})
}

// TestBentAnswers cuts and changes each answer at every byte, which a fuzzer rarely does.
func TestBentAnswers(t *testing.T) {
	r := newRig(t)
	r.enrol(r.alice, r.phone)
	made, shown := r.made(r.alice, authkit.New(issuer)), r.asked(ways.Ask{Purpose: ways.SignIn}, r.phone)
	try := func(response []byte, finish func(ways.Answer) error, a ways.Answer) {
		a.Response = response
		if err := finish(a); err != nil && !errors.Is(err, ways.ErrRefused) && !errors.Is(err, ways.ErrOver) &&
			!errors.Is(err, ways.ErrKnown) {
			t.Errorf("%q: got %v", response, err)
		}
	}
	enrol := func(a ways.Answer) error {
		_, err := r.FinishPasskey(t.Context(), here, r.alice, "x", a)
		return err
	}
	signIn := func(a ways.Answer) error {
		_, err := r.FinishSignIn(t.Context(), here, ways.SignIn, a)
		return err
	}
	for at := range len(made.Response) {
		bent := append([]byte{}, made.Response...)
		bent[at] ^= 1
		try(bent, enrol, made)
		try(made.Response[:at], enrol, made)
	}
	for at := range len(shown.Response) {
		bent := append([]byte{}, shown.Response...)
		bent[at] ^= 1
		try(bent, signIn, shown)
		try(shown.Response[:at], signIn, shown)
	}
}
