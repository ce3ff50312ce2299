package ways

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// These are the authentication methods of a session (RFC 8176 has names for some).
const (
	ByPassword = "pwd"
	ByPasskey  = "webauthn"
	ByApp      = "otp"
	ByRecovery = "recovery"
	ByProvider = "fed"
	ByLink     = "link"
	// ByOtherDevice is added to the methods that the user used on another device to approve this
	// session. It is not a proof by itself.
	ByOtherDevice = "device"
)

// Demand is the requirement for a second factor.
type Demand string

// These are the demands.
const (
	Off Demand = "off"
	// Optional requires it from users who have a passkey or an app.
	Optional Demand = "optional"
	Required Demand = "required"
	// Enrolled is for users with a role. It means Required as soon as one of them has a passkey or
	// an app, and the demand for everybody until then.
	Enrolled Demand = "enrolled"
)

// Policy configures who needs a second factor. A passkey that verified the user counts as two.
type Policy struct {
	Everybody Demand // default: Optional
	Admins    Demand // users with a role; default: Enrolled
}

func (p Policy) of(u storage.User, f storage.Factors) Demand {
	everybody, admins := p.Everybody, p.Admins
	if everybody == "" {
		everybody = Optional
	}
	if admins == "" {
		admins = Enrolled
	}
	switch {
	case u.Role == "":
		return everybody
	case admins != Enrolled:
		return admins
	case f.AdminEnrolled:
		return Required
	}
	return everybody
}

// Need is the proof that a sign-in still requires.
type Need struct {
	// Missing means that the user must use another method before sign-in is complete.
	Missing bool
	// Possible lists the suitable methods, best first. If it is empty, see Enrol.
	Possible []string
	// Enrol means that the user has no suitable method, and must enroll a passkey or an app first.
	// If it is false and Possible is empty, the sign-in is refused; an operator's link helps.
	Enrol bool
	// App means that an app is also sufficient.
	App bool
}

// Needs returns the missing proof of a user who has signed in with methods. Unknown methods count
// as a password.
func (w *Ways) Needs(ctx context.Context, u storage.User, methods []string) (Need, error) {
	f, err := w.Factors(ctx, u.ID)
	if err != nil {
		return Need{}, err
	}
	return w.cfg.Policy.needs(u, f, methods), nil
}

func (p Policy) needs(u storage.User, f storage.Factors, methods []string) Need {
	shown := func(m string) bool { return slices.Contains(methods, m) }
	first := shown(ByPassword) || shown(ByProvider)
	recovering := shown(ByRecovery) && !first
	// A recovery code replaces a lost passkey or app. For a user who has neither, it is not a
	// second factor: otherwise a password, which is sufficient to create recovery codes, would be
	// enough.
	replaces := f.Passkeys+f.Apps > 0
	switch {
	case shown(ByPasskey), shown(ByLink), (first || recovering) && shown(ByApp):
		return Need{}
	case first && shown(ByRecovery) && (replaces || p.of(u, f) != Required):
		return Need{}
	case recovering && p.codeIsSecond(u, f):
		return Need{Missing: true, Possible: possible(f, false, true)}
	case recovering:
		return Need{}
	}
	switch p.of(u, f) {
	case Required:
		can := possible(f, replaces, false)
		return Need{Missing: true, Possible: can, Enrol: len(can) == 0, App: true}
	case Optional:
		// The provider decides about its own factors.
		if !shown(ByProvider) && f.Passkeys+f.Apps > 0 {
			return Need{Missing: true, Possible: possible(f, true, false)}
		}
	}
	return Need{}
}

// codeIsSecond reports whether a recovery code alone is not sufficient (PE-06). A written code is
// not enough for a user with a role, or where two factors are required.
func (p Policy) codeIsSecond(u storage.User, f storage.Factors) bool {
	return u.Role != "" || p.of(u, f) == Required
}

// CodeIsSecond reports whether a user needs another proof in addition to a recovery code.
func (w *Ways) CodeIsSecond(u storage.User, f storage.Factors) bool {
	return w.cfg.Policy.codeIsSecond(u, f)
}

// possible returns the methods that a user can use.
func possible(f storage.Factors, recovery, password bool) (out []string) {
	if f.Passkeys > 0 {
		out = append(out, ByPasskey)
	}
	if f.Apps > 0 {
		out = append(out, ByApp)
	}
	if recovery && f.RecoveryCodes > 0 {
		out = append(out, ByRecovery)
	}
	if password && f.Password {
		out = append(out, ByPassword)
	}
	return out
}
