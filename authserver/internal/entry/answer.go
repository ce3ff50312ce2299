package entry

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Answer is what a person has given: a code of their app, a recovery code, the answer of a passkey or
// a password.
type Answer struct {
	Code, Recovery string
	Credential     []byte
	Browser        string        // its mark
	Attempt        users.Attempt // with the password
}

// Given reports whether there is anything at all.
func (a Answer) Given() bool {
	return a.Code != "" || a.Recovery != "" || len(a.Credential) > 0 || a.Attempt.Password != ""
}

func (a Answer) credential(sealed string) ways.Answer {
	return ways.Answer{Sealed: sealed, Response: a.Credential}
}

// method is how the person proves who they are.
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

// check looks at an answer of a person, says which method it is, and returns what is stored of a recovery code,
// which is yet to be spent.
func (s *SignIns) check(
	ctx context.Context, u storage.User, p ways.Purpose, sealed string, a Answer,
) (method string, code *storage.Hash, err error) {
	a.Attempt.Name = u.Name
	switch {
	case len(a.Credential) > 0:
		_, err = s.Ways.FinishSignIn(ctx, a.Browser, p, a.credential(sealed)) // asked of this person
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
