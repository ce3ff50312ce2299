package ways

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

const (
	// appPurpose is the purpose for sealing the secret of an app. The id of its way is bound to it.
	appPurpose = "authenticator app"
	// appSecret is the length of an app's secret in bytes, as long as the hash (RFC 4226 §4 R6).
	appSecret = 20
	// step is the time step of codes (RFC 6238 §5.2).
	step = 30 * time.Second
)

// NewApp is an authenticator app during enrollment.
type NewApp struct {
	Ceremony
	Secret string // base32, for typing
	URI    string // otpauth:// URI
}

// BeginApp begins to enroll an authenticator app with SHA-1, six digits and 30 seconds, which every
// app supports.
func (w *Ways) BeginApp(browser string, u storage.User) (NewApp, error) {
	secret := secrets.Bytes(appSecret)
	key, err := totp.Generate(totp.GenerateOpts{Issuer: w.cfg.Name, AccountName: u.Name, Secret: secret})
	if err != nil {
		return NewApp{}, fmt.Errorf("ways: begin app: %w", err)
	}
	out := NewApp{Secret: key.Secret(), URI: key.URL()}
	out.Sealed = w.seal(browser, state{Purpose: enrolApp, UserID: u.ID, Secret: secret})
	return out, nil
}

// FinishApp stores an app after a correct code. It returns ErrName, ErrOver, ErrCode or
// storage.ErrFull. After ErrCode the user can try again.
func (w *Ways) FinishApp(
	ctx context.Context, browser string, u storage.User, name, sealed, code string,
) (storage.Way, error) {
	name, err := named(name)
	if err != nil {
		return storage.Way{}, err
	}
	s, err := w.begun(browser, enrolApp, u, sealed)
	if err != nil {
		return storage.Way{}, w.refuseNew(ctx, u, storage.App, err)
	}
	at, ok := matches(s.Secret, code, w.cfg.Now())
	if !ok {
		return storage.Way{}, ErrCode
	}
	// Each secret is stored once, even if the form is sent again.
	if err := w.cfg.Store.Spend(ctx, spent, secretID(s.Secret), s.expires()); err != nil {
		return storage.Way{}, w.refuseNew(ctx, u, storage.App, over(err))
	}
	way := storage.Way{
		ID: secrets.ID("way_"), UserID: u.ID, Kind: storage.App, Name: name, Counter: at, CreatedAt: w.cfg.Now(),
	}
	way.Data = w.cfg.Ring.Seal(appPurpose, s.Secret, []byte(way.ID))
	if err := w.cfg.Store.AddWay(ctx, way, w.in); err != nil {
		return storage.Way{}, fmt.Errorf("ways: finish app: %w", err)
	}
	return way, nil
}

// secretID returns an id that does not reveal the secret.
func secretID(secret []byte) string {
	h := secrets.Hash("app\x00" + string(secret))
	return fmt.Sprintf("app:%x", h[:16])
}

// CheckApp checks a code of any app of a known user. It returns users.ErrWrong or a
// *users.ThrottledError. A code is valid once, and older codes are then refused (RFC 6238 §5.2,
// PE-05).
func (w *Ways) CheckApp(ctx context.Context, u storage.User, a users.Attempt, code string) error {
	a.Name = u.Name
	return w.cfg.Guesses.Guess(ctx, users.AppCode, u, a,
		func(ctx context.Context) error { return w.checkApp(ctx, u, code) })
}

// checks is the number of attempts to check a code while the app is used concurrently.
const checks = 3

func (w *Ways) checkApp(ctx context.Context, u storage.User, code string) error {
	if u.Disabled {
		return users.ErrWrong
	}
	for range checks {
		err := w.spendCode(ctx, u.ID, code)
		if !errors.Is(err, storage.ErrChanged) {
			return err
		}
	}
	return users.ErrWrong
}

// spendCode checks and uses up a code. It returns storage.ErrChanged if the app was used
// concurrently.
func (w *Ways) spendCode(ctx context.Context, userID, code string) error {
	all, err := w.cfg.Store.Ways(ctx, userID)
	if err != nil {
		return fmt.Errorf("ways: check app: %w", err)
	}
	for _, way := range all {
		if way.Kind != storage.App {
			continue
		}
		secret, err := w.cfg.Ring.Open(appPurpose, way.Data, []byte(way.ID))
		if err != nil {
			w.cfg.Logger.ErrorContext(ctx, "the secret of an authenticator app cannot be opened: "+
				"its master key is missing", "user", userID, "way", way.ID)
			continue
		}
		at, ok := matches(secret, code, w.cfg.Now())
		if !ok || at <= way.Counter {
			continue
		}
		err = w.cfg.Store.UseWay(ctx, storage.WayUse{ID: way.ID, From: way.Counter, To: at, Now: w.cfg.Now()})
		if err != nil {
			return fmt.Errorf("ways: check app: %w", err)
		}
		return nil
	}
	return users.ErrWrong
}

// matches returns the time step of a code. It accepts the current step and its neighbors, because
// clocks differ (RFC 6238 §6).
func matches(secret []byte, code string, now time.Time) (at int64, ok bool) {
	code = strings.Map(digits, code)
	encoded := base32Secret.EncodeToString(secret)
	present := now.Unix() / int64(step/time.Second)
	for s := present - 1; s <= present+1; s++ {
		want, err := hotp.GenerateCodeCustom(encoded, uint64(s),
			hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			at, ok = s, true
		}
	}
	return at, ok
}

// digits removes separators that users type between digits.
func digits(c rune) rune {
	if c == ' ' || c == '-' {
		return -1
	}
	return c
}
