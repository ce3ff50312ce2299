package ways

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Recovery codes are written down: 100 bits each, in letters that are not mistaken for one another.
const (
	RecoveryCodes = 10
	codeLength    = 20
	codeGroup     = 5
)

var (
	base32Secret = base32.StdEncoding.WithPadding(base32.NoPadding)
	written      = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)
)

// NewRecoveryCodes makes the recovery codes of a person, in place of those from before, and returns
// them: they can be shown this once only. storage.ErrNotFound when the account is gone or disabled.
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

// recoveryHash is what is stored of a code. It has so many bits that stretching would add nothing,
// and the person in it, so that a guess is one at one person's codes.
func recoveryHash(userID, code string) storage.Hash {
	return secrets.Hash("recovery code\x00" + userID + "\x00" + code)
}

// CheckRecoveryCode returns the person whose name is a.Name, and what is stored of their recovery code, which
// the sign-in spends that it is for: users.ErrWrong or a *users.ThrottledError. An unknown name costs as much
// as a wrong code (PE-08).
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

// plain is a code as it was made, of what a person has typed.
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
