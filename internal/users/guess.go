package users

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Guessed is a secret beside the password that can be guessed. Its failures are counted under keys
// of their own, so that no other right answer forgives them; no name contains it.
type Guessed string

// What is guessed.
const (
	// AppCode has six digits, so that few tries are made in a day.
	AppCode Guessed = "code of an app\x00"
	// RecoveryCode has a hundred bits.
	RecoveryCode Guessed = "recovery code\x00"
)

// Guess is the throttle of passwords for another secret (PE-05). check looks at the secret: ErrWrong when
// it is not right. account is the one that a.Name belongs to, none for an unknown name.
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
		audit.Note(ctx, audit.Person(account.ID, account.Name)) // for the attempt
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

// A caller who has the password needs only six digits. Of a million codes three
// are good at a time, and of each app of the person others; so the wrong codes of a day are few: some
// are free, and after each further one there is a pause before the next is looked at. There are 62
// of them in any day, with which the best guesser of one app is right once in 5,000 days, and of
// storage.MaxApps once in 1,000.
//
// The codes of all unknown browsers together are counted, and those of each known one apart, so that
// a thief of the password does not use up the tries of its owner where they sign in as a rule. A new
// password gives no new tries: who reads the mail of the person can set one again and again. forgiveTries
// has the exceptions.
const (
	tryWindow   = 24 * time.Hour
	triesFree   = 10
	maxTryPause = 30 * time.Minute
	// tellAfter is the wrong code of which the person is told.
	tellAfter = 5
	// takes is how often a try is looked for when others are made at the same moment.
	takes = 2 * maxUnderWay
)

// tryPause is how long after the last of n codes another one is looked at.
func tryPause(n int) time.Duration {
	switch late := n - triesFree; {
	case late < 0:
		return 0
	case late < 5:
		return time.Minute << late
	}
	return maxTryPause
}

// tryKey is what the tries of an account are counted under: of the known browser, or of all others.
func tryKey(account storage.User, a Attempt) storage.Hash {
	parts := []string{"tries", account.ID}
	if a.known() {
		parts = append(parts, a.KnownBrowser.ID)
	}
	return key(parts...)
}

// forgiveTries begins a new count of codes in unknown browsers, after an operator has set a password, or the
// person in a session with two factors: neither needed a code of the app. It may not stop the change.
func (u *Users) forgiveTries(ctx context.Context, account storage.User) {
	if err := u.cfg.Store.ClearFailures(ctx, tryKey(account, Attempt{})); err != nil {
		u.cfg.Logger.WarnContext(ctx, "the wrong codes stay counted", "user", account.ID, "error", err)
	}
}

// tryCode has a code looked at if it is time for it: else a *ThrottledError. The try is counted
// before, by one statement for all replicas, so that a burst is no more than one try.
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

// takeTry counts a try, and says how many there are with it.
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

// returnTry gives back the try of a right code; in a known browser it forgives the wrong ones. It may
// not stop the sign-in.
func (u *Users) returnTry(ctx context.Context, k storage.Hash, account storage.User, a Attempt) {
	end := u.cfg.Store.ReturnTry
	if a.known() {
		end = u.cfg.Store.ClearFailures
	}
	if err := end(ctx, k); err != nil {
		u.cfg.Logger.WarnContext(ctx, "the try of a right code stays counted", "user", account.ID, "error", err)
	}
}
