package ways_test

import (
	"encoding/base32"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// app enrolls an authenticator app for alice.
func (r *rig) app() (secret string) {
	r.t.Helper()
	n, err := r.BeginApp(here, r.alice)
	r.must(err)
	_, err = r.FinishApp(r.t.Context(), here, r.alice, "App", n.Sealed, r.code(n.Secret, 0))
	r.must(err)
	return n.Secret
}

// code returns the code of an app some steps from now.
func (r *rig) code(secret string, steps int) string {
	r.t.Helper()
	code, err := totp.GenerateCode(secret, r.Now().Add(time.Duration(steps)*30*time.Second))
	r.must(err)
	return code
}

func (r *rig) check(code string) error {
	return r.CheckApp(r.t.Context(), r.alice, users.Attempt{Network: "net"}, code)
}

func TestApps(t *testing.T) {
	t.Run("an app is put in by its QR code or by hand, and kept once it shows a code", func(t *testing.T) {
		r := newRig(t)
		n, err := r.BeginApp(here, r.alice)
		r.must(err)
		u, err := url.Parse(n.URI)
		r.must(err)
		q := u.Query()
		q.Del("secret")
		const want = "algorithm=SHA1&digits=6&issuer=auth.example&period=30"
		if u.Scheme+u.Host+u.Path != "otpauthtotp/auth.example:alice" || q.Encode() != want {
			t.Errorf("got %s", n.URI)
		}
		raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(n.Secret)
		if err != nil || len(raw) != 20 || u.Query().Get("secret") != n.Secret {
			t.Errorf("the secret has %d bytes: %v", len(raw), err)
		}
		finish := func(browser, code string, u storage.User) error {
			_, err := r.FinishApp(t.Context(), browser, u, "App", n.Sealed, code)
			return err
		}
		wantErr(t, finish(here, "000000x", r.alice), ways.ErrCode)
		wantErr(t, finish(there, r.code(n.Secret, 0), r.alice), ways.ErrOver)
		wantErr(t, finish(here, r.code(n.Secret, 0), r.person("eve")), ways.ErrOver)
		code := r.code(n.Secret, 0)
		r.must(finish(here, code[:3]+" "+code[3:], r.alice))
		wantErr(t, finish(here, r.code(n.Secret, 1), r.alice), ways.ErrOver)
		all := mustList(r)
		if len(all) != 1 || all[0].Kind != storage.App || strings.Contains(string(all[0].Data), n.Secret) {
			t.Errorf("got %+v", all)
		}
		wantErr(t, r.check(r.code(n.Secret, 0)), users.ErrWrong) // the code was already used
	})
	t.Run("an app that is begun is over after five minutes", func(t *testing.T) {
		r := newRig(t)
		n, err := r.BeginApp(here, r.alice)
		r.must(err)
		r.Advance(5 * time.Minute)
		_, err = r.FinishApp(t.Context(), here, r.alice, "App", n.Sealed, r.code(n.Secret, 0))
		wantErr(t, err, ways.ErrOver)
	})
	t.Run("PE-05 a code is good once, and none that is older than the last one", func(t *testing.T) {
		r := newRig(t)
		secret := r.app()
		r.Advance(time.Hour)
		old, code := r.code(secret, -1), r.code(secret, 0)
		r.must(r.check(code))
		wantErr(t, r.check(code), users.ErrWrong)
		wantErr(t, r.check(old), users.ErrWrong)
		r.Advance(30 * time.Second)
		wantErr(t, r.check(code), users.ErrWrong)
		r.must(r.check(r.code(secret, 0)))
	})
	t.Run("RFC 6238 6: clocks may differ by one step, and not by two", func(t *testing.T) {
		for steps, want := range map[int]error{-2: users.ErrWrong, -1: nil, 0: nil, 1: nil, 2: users.ErrWrong} {
			r := newRig(t)
			secret := r.app()
			r.Advance(time.Hour)
			if err := r.check(r.code(secret, steps)); !errors.Is(err, want) {
				t.Errorf("%d steps: got %v, want %v", steps, err, want)
			}
		}
	})
	t.Run("PE-05 one code in many browsers at once lets one in", func(t *testing.T) {
		r := newRig(t)
		secret := r.app()
		r.Advance(time.Hour)
		code := r.code(secret, 0)
		var all sync.WaitGroup
		var mu sync.Mutex
		in := 0
		for range 8 {
			all.Go(func() {
				err := r.check(code)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					in++
				} else if !errors.Is(err, users.ErrWrong) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		if in != 1 {
			t.Errorf("%d were let in, want 1", in)
		}
	})
	t.Run("PE-05 guesses are counted, as those of passwords are", func(t *testing.T) {
		r := newRig(t)
		r.app()
		for range 7 {
			wantErr(t, r.check("000000"), users.ErrWrong)
		}
		if r.logged("wrong code") != 7 {
			t.Errorf("got %s", r.Log.String())
		}
	})
	t.Run("no code of a person who is disabled, or has no app", func(t *testing.T) {
		r := newRig(t)
		wantErr(t, r.check("123456"), users.ErrWrong)
		secret := r.app()
		r.alice.Disabled = true
		r.Advance(time.Hour)
		wantErr(t, r.check(r.code(secret, 0)), users.ErrWrong)
	})
}

// TestReseal checks that the secrets of apps move to a new master key.
func TestReseal(t *testing.T) {
	r := newRig(t)
	secret := r.app()
	next, err := secrets.NewRing([]byte(strings.Repeat("n", 32)), []byte(strings.Repeat("\x07", 32)))
	r.must(err)
	other, err := secrets.NewRing([]byte(strings.Repeat("o", 32)))
	r.must(err)
	if _, err := ways.Reseal(t.Context(), r.Store, other); err == nil {
		t.Error("it was sealed by a key that is missing, and that was not told")
	}
	for _, want := range []int{1, 0} {
		n, err := ways.Reseal(t.Context(), r.Store, next)
		r.must(err)
		if n != want {
			t.Errorf("sealed %d again, want %d", n, want)
		}
	}
	if r.ring, err = secrets.NewRing([]byte(strings.Repeat("n", 32))); err != nil {
		t.Fatal(err)
	}
	r.Ways = r.at(issuer)
	r.Advance(time.Hour)
	r.must(r.check(r.code(secret, 0)))
}

func TestPE06RecoveryCodes(t *testing.T) {
	r := newRig(t)
	spend := func(name, code string) error {
		u, stored, err := r.CheckRecoveryCode(t.Context(), users.Attempt{Name: name, Network: "net"}, code)
		if err != nil {
			return err
		}
		if u.ID != r.alice.ID {
			t.Errorf("got %+v", u)
		}
		return r.Store.PutSession(t.Context(), storage.Session{
			Hash: secrets.Hash(secrets.ID("")), UserID: u.ID, CreatedAt: r.Now(), ExpiresAt: r.Now().Add(time.Hour),
		}, storage.SignInStart{RecoveryCode: &stored})
	}
	codes, err := r.NewRecoveryCodes(t.Context(), r.alice.ID)
	r.must(err)
	if len(codes) != 10 || len(codes[0]) != 23 || strings.Count(codes[0], "-") != 3 {
		t.Fatalf("got %q", codes)
	}
	r.must(spend("ALICE", codes[0]))
	wantErr(t, spend("alice", codes[0]), users.ErrWrong)
	r.person("bob")
	wantErr(t, spend("bob", codes[1]), users.ErrWrong)
	wantErr(t, spend("nobody", codes[1]), users.ErrWrong)
	wantErr(t, spend("", codes[1]), users.ErrWrong)
	r.must(spend("alice", " "+strings.ToLower(strings.ReplaceAll(codes[1], "-", " "))))
	r.must(spend("alice", strings.NewReplacer("0", "o", "1", "l").Replace(codes[2])))
	f, err := r.Factors(t.Context(), r.alice.ID)
	r.must(err)
	if f.RecoveryCodes != 7 {
		t.Errorf("%d are left, want 7", f.RecoveryCodes)
	}
	again, err := r.NewRecoveryCodes(t.Context(), r.alice.ID)
	r.must(err)
	wantErr(t, spend("alice", codes[3]), users.ErrWrong)
	r.must(spend("alice", again[3]))
	_, err = r.NewRecoveryCodes(t.Context(), "usr_none")
	wantErr(t, err, storage.ErrNotFound)
	for range 60 {
		if err := spend("alice", "00000-00000-00000-00000"); !errors.Is(err, users.ErrWrong) {
			t.Fatalf("a guess: %v", err)
		}
	}
	r.must(spend("alice", again[4])) // the user is not locked out
}
