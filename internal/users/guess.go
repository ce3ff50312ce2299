package users

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Guessed is a guessable secret other than the password. Its failures are counted under separate
// keys, so that other correct answers do not clear them. Account names cannot contain its value.
type Guessed string

// These are the guessable secrets.
const (
	// AppCode has six digits, so it allows few tries per day.
	AppCode Guessed = "code of an app\x00"
	// RecoveryCode has a hundred bits.
	RecoveryCode Guessed = "recovery code\x00"
)

// Guess checks another secret with the throttling of passwords (PE-05). check returns ErrWrong if
// the secret is wrong. account is the account of a.Name, or the zero value for an unknown name.
func (u *Users) Guess(
	ctx context.Context, what Guessed, account storage.User, a Attempt, check func(context.Context) error,
) error {
	a.of = what
	release, err := u.throttle.enter(ctx, a)
	if err != nil {
		u.recordThrottled(ctx, account, a, err)
		return err
	}
	defer release()
	if what == AppCode {
		err = u.tryCode(ctx, account, a, check)
	} else {
		err = check(ctx)
	}
	switch {
	case errors.Is(err, ErrWrong):
		request.Of(ctx).Note(audit.Person(account.ID, account.Name)) // for the sign-in log
		u.cfg.Audit.Record(ctx, audit.LoginFailed, audit.Person(account.ID, account.Name),
			slog.String("network", a.Network), slog.String("reason", "wrong code"))
		if err := u.count(ctx, a); err != nil {
			return fmt.Errorf("users: guess: %w", err)
		}
	case err == nil:
		u.forgive(ctx, a, account)
	default:
		u.recordThrottled(ctx, account, a, err)
	}
	return err
}

// A caller who has the password must guess only six digits. Three of a million codes are valid at a
// time, per app of the user. So the number of wrong codes per day is limited: some are free, and
// after each further one the next must wait. In any day, 62 are possible. The best attacker is then
// right once in 5,000 days with one app, and once in 1,000 days with storage.MaxApps.
//
// The codes of all unknown browsers are counted together. Each known browser has a separate count.
// So a thief of the password does not use up the tries of the owner in the owner's usual browser. A
// new password gives no new tries, because a thief who reads the user's mail can set one
// repeatedly. forgiveTries describes the exceptions.
const (
	tryWindow   = 24 * time.Hour
	triesFree   = 10
	maxTryPause = 30 * time.Minute
	// tellAfter is the number of wrong codes after which the user is notified.
	tellAfter = 5
	// takes is the number of attempts to count a try while other tries are counted concurrently.
	takes = 2 * maxUnderWay
)

// tryPause returns the delay after the last of n codes before another one is checked.
func tryPause(n int) time.Duration {
	switch late := n - triesFree; {
	case late < 0:
		return 0
	case late < 5:
		return time.Minute << late
	}
	return maxTryPause
}

// tryKey returns the key for the tries of an account: of the known browser, or of all others.
func tryKey(account storage.User, a Attempt) storage.Hash {
	parts := []string{"tries", account.ID}
	if a.known() {
		parts = append(parts, a.KnownBrowser.ID)
	}
	return key(parts...)
}

// forgiveTries resets the count of codes in unknown browsers. It is called after an operator, or
// the user in a session with two factors, has set a password, because neither needed a code. An
// error does not prevent the change.
func (u *Users) forgiveTries(ctx context.Context, account storage.User) {
	if err := u.cfg.Store.ClearFailures(ctx, tryKey(account, Attempt{})); err != nil {
		u.cfg.Logger.WarnContext(ctx, "the wrong codes stay counted", "user", account.ID, "error", err)
	}
}

// tryCode checks a code, or returns a *ThrottledError if it is too early. It counts the try first,
// in one statement for all replicas, so that a burst gets only one try.
func (u *Users) tryCode(
	ctx context.Context, account storage.User, a Attempt, check func(context.Context) error,
) error {
	k := tryKey(account, a)
	n, err := u.takeTry(ctx, k)
	if err != nil {
		return err
	}
	err = check(ctx)
	switch {
	case errors.Is(err, ErrWrong) && n == tellAfter:
		u.cfg.Notifier.Tell(ctx, account.ID, notice.Change{Kind: notice.CodesGuessed})
	case err == nil:
		u.returnTry(ctx, k, account, a)
	}
	return err
}

// takeTry counts a try and returns the new number of tries.
func (u *Users) takeTry(ctx context.Context, k storage.Hash) (int, error) {
	for range takes {
		n, last, err := u.cfg.Store.FailureCount(ctx, k, u.cfg.Now(), tryWindow)
		if err != nil {
			return 0, fmt.Errorf("users: guess: %w", err)
		}
		if wait := tryPause(n) - u.cfg.Now().Sub(last); n >= triesFree && wait > 0 {
			return 0, &ThrottledError{RetryAfter: wait, Counted: ByCode}
		}
		err = u.cfg.Store.TakeTry(ctx, k, n, u.cfg.Now(), tryWindow)
		if err == nil {
			return n + 1, nil
		}
		if !errors.Is(err, storage.ErrChanged) {
			return 0, fmt.Errorf("users: guess: %w", err)
		}
	}
	return 0, &ThrottledError{RetryAfter: time.Second, Counted: ByCode}
}

// returnTry uncounts the try of a correct code. In a known browser it clears all wrong codes. An
// error does not prevent the sign-in.
func (u *Users) returnTry(ctx context.Context, k storage.Hash, account storage.User, a Attempt) {
	end := u.cfg.Store.ReturnTry
	if a.known() {
		end = u.cfg.Store.ClearFailures
	}
	if err := end(ctx, k); err != nil {
		u.cfg.Logger.WarnContext(ctx, "the try of a right code stays counted", "user", account.ID, "error", err)
	}
}
