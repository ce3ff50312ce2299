package mcpresource

import (
	"context"
	"time"
)

// unseenOvertime is the maximum overtime of a call if the validator cannot see a revocation during
// it. The response of RFC 7662 is the same for expired and revoked tokens.
const unseenOvertime = time.Minute

// overtime returns how long a call may outlive its token, at most longest. JWT validators use a
// status list, which still covers expired tokens, or see no revocation at all.
func overtime(p *Principal, longest time.Duration) time.Duration {
	if p.revoked == nil && p.signed == nil {
		return min(longest, unseenOvertime)
	}
	return longest
}

// still validates the token of p with again, without the checks that a status list's watch already covers.
func still(ctx context.Context, p *Principal, again func(context.Context) (*Principal, error)) error {
	if p.status != nil {
		return p.signed(ctx)
	}
	_, err := again(ctx)
	return err
}

// watchStatus calls end if the issuer of p revokes the token in a status list, until leave.
func watchStatus(p *Principal, end context.CancelCauseFunc) (leave func()) {
	if p.status == nil {
		return func() {}
	}
	return p.status.Watch(func(err error) { end(statusError(err)) })
}

// seesRevocation reports whether a revocation of an expired token can be seen.
func seesRevocation(p *Principal) bool { return p.revoked != nil }

// revoked returns an error if the token is revoked, even after it expired.
func revoked(ctx context.Context, p *Principal) error { return p.revoked(ctx) }
