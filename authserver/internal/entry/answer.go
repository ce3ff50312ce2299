package entry

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// Answer is what a user entered: a code of their authenticator app, a recovery code, a passkey
// response, or a password.
type Answer struct {
	Code, Recovery string
	Credential     []byte
	Browser        string        // the browser's mark
	Attempt        users.Attempt // with the password
}

// Given reports whether the answer is not empty.
func (a Answer) Given() bool {
	return a.Code != "" || a.Recovery != "" || len(a.Credential) > 0 || a.Attempt.Password != ""
}

func (a Answer) credential(sealed string) ways.Answer {
	return ways.Answer{Sealed: sealed, Response: a.Credential}
}

// method returns the authentication method of the answer.
func (a Answer) method() string {
	switch {
	case len(a.Credential) > 0:
		return ways.ByPasskey
	case a.Recovery != "":
		return ways.ByRecovery
	case a.Attempt.Password != "":
		return ways.ByPassword
	}
	return ways.ByApp
}

// check verifies a user's answer and returns its method. For a recovery code it also returns the
// stored hash, which is not used up yet.
func (s *SignIns) check(
	ctx context.Context, u storage.User, p ways.Purpose, sealed string, a Answer,
) (method string, code *storage.Hash, err error) {
	a.Attempt.Name = u.Name
	switch {
	case len(a.Credential) > 0:
		_, err = s.Ways.FinishSignIn(ctx, a.Browser, p, a.credential(sealed)) // requested from this user
		return ways.ByPasskey, nil, err
	case a.Recovery != "" && p == ways.Second:
		_, stored, err := s.Ways.CheckRecoveryCode(ctx, a.Attempt, a.Recovery)
		return ways.ByRecovery, &stored, err
	case a.Attempt.Password != "" && !s.Ways.Admission().Passwords:
		return "", nil, users.ErrWrong
	case a.Attempt.Password != "":
		_, err = s.Users.Authenticate(ctx, a.Attempt)
		return ways.ByPassword, nil, err
	}
	return ways.ByApp, nil, s.Ways.CheckApp(ctx, u, a.Attempt, a.Code)
}
