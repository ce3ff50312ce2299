package token

import (
	"context"
	"time"
)

// UnseenOvertime is the maximum overtime of a call if the validator cannot see a revocation during
// it. The response of RFC 7662 is the same for expired and revoked tokens.
const UnseenOvertime = time.Minute

// Overtime returns how long a call may outlive its token, at most longest. JWT validators use a
// status list, which still covers expired tokens, or see no revocation at all.
func Overtime(p *Principal, longest time.Duration) time.Duration {
	if p.revoked == nil && p.signed == nil {
		return min(longest, UnseenOvertime)
	}
	return longest
}

// Still validates the token of p with again, without the checks that a status list's watch already covers.
func Still(ctx context.Context, p *Principal, again func(context.Context) (*Principal, error)) error {
	if p.status != nil {
		return p.signed(ctx)
	}
	_, err := again(ctx)
	return err
}

// WatchStatus calls end if the issuer of p revokes the token in a status list, until leave.
func WatchStatus(p *Principal, end context.CancelCauseFunc) (leave func()) {
	if p.status == nil {
		return func() {}
	}
	return p.status.Watch(func(err error) { end(statusError(err)) })
}

// SeesRevocation reports whether a revocation of an expired token can be seen.
func SeesRevocation(p *Principal) bool { return p.revoked != nil }

// Revoked returns an error if the token is revoked, even after it expired.
func Revoked(ctx context.Context, p *Principal) error { return p.revoked(ctx) }
