package ways

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// Recovery codes have 100 bits each, written in letters that are easy to distinguish.
const (
	RecoveryCodes = 10
	codeLength    = 20
	codeGroup     = 5
)

var (
	base32Secret = base32.StdEncoding.WithPadding(base32.NoPadding)
	written      = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)
)

// NewRecoveryCodes replaces a user's recovery codes and returns the new ones, which cannot be shown
// again. It returns storage.ErrNotFound if the account was deleted or disabled.
func (w *Ways) NewRecoveryCodes(ctx context.Context, userID string) ([]string, error) {
	codes, hashes := make([]string, RecoveryCodes), make([]storage.Hash, RecoveryCodes)
	for i := range codes {
		code := written.EncodeToString(secrets.Bytes(13))[:codeLength]
		hashes[i] = recoveryHash(userID, code)
		var groups []string
		for at := 0; at < codeLength; at += codeGroup {
			groups = append(groups, code[at:at+codeGroup])
		}
		codes[i] = strings.Join(groups, "-")
	}
	if err := w.cfg.Store.ReplaceRecoveryCodes(ctx, userID, hashes, w.in); err != nil {
		return nil, fmt.Errorf("ways: recovery codes: %w", err)
	}
	return codes, nil
}

// recoveryHash returns the stored hash of a code. A code has so many bits that stretching would add
// nothing. The hash includes the user, so that a guess applies to one user's codes only.
func recoveryHash(userID, code string) storage.Hash {
	return secrets.Hash("recovery code\x00" + userID + "\x00" + code)
}

// CheckRecoveryCode returns the user with the name a.Name and the stored hash of their recovery
// code. The sign-in must use up the code. It returns users.ErrWrong or a *users.ThrottledError. An
// unknown name takes as long as a wrong code (PE-08).
func (w *Ways) CheckRecoveryCode(
	ctx context.Context, a users.Attempt, code string,
) (u storage.User, stored storage.Hash, err error) {
	u, err = w.cfg.Store.UserByName(ctx, a.Name)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		u = storage.User{}
	case err != nil:
		return u, stored, fmt.Errorf("ways: recovery code: %w", err)
	}
	stored = recoveryHash(u.ID, plain(code))
	err = w.cfg.Guesses.Guess(ctx, users.RecoveryCode, u, a, func(ctx context.Context) error {
		err := w.cfg.Store.CheckRecoveryCode(ctx, u.ID, stored)
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrSpent):
			return users.ErrWrong
		case err != nil:
			return fmt.Errorf("ways: recovery code: %w", err)
		}
		return nil
	})
	if err != nil {
		return storage.User{}, storage.Hash{}, err
	}
	return u, stored, nil
}

// plain returns the original form of a code that a user has typed.
func plain(code string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case ' ', '-':
			return -1
		case 'O':
			return '0'
		case 'I', 'L':
			return '1'
		}
		return c
	}, strings.ToUpper(code))
}
