package ways

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/storage"
)

// The methods of a session (RFC 8176 has names for some): how a person has shown who they are.
const (
	ByPassword = "pwd"
	ByPasskey  = "webauthn"
	ByApp      = "otp"
	ByRecovery = "recovery"
	ByProvider = "fed"
	ByLink     = "link"
	// ByOtherDevice stands beside the methods by which the person proved who they are elsewhere, on the
	// device that let this one in. It is no proof of its own.
	ByOtherDevice = "device"
)

// Demand is how much a second factor is wanted.
type Demand string

// The demands.
const (
	Off Demand = "off"
	// Optional: of those who have a passkey or an app.
	Optional Demand = "optional"
	Required Demand = "required"
	// Enrolled, for people with a role: required as soon as one of them has a passkey or an app, and
	// until then as for everybody.
	Enrolled Demand = "enrolled"
)

// Policy says of whom a second factor is wanted. A passkey that verified the person is two.
type Policy struct {
	Everybody Demand // default: Optional
	Admins    Demand // of people with a role; default: Enrolled
}

// of is the demand on a person.
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

// Need is what is missing of a sign-in.
type Need struct {
	// Missing: the person has to show more before they are let in.
	Missing bool
	// Possible are the methods by which they can, the best one first. None: see Enrol.
	Possible []string
	// Enrol: they have nothing to show, and have to enrol a passkey or an app first. Where it is
	// false and nothing is possible, they are not let in: an operator's link helps.
	Enrol bool
	// App: an app would do for that, too.
	App bool
}

// Needs says what is missing when a person has signed in by methods. Methods that are not known are
// taken for a password.
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
	// A recovery code replaces a lost passkey or app. For a person who has neither, it is not a second factor:
	// else a password alone, which makes recovery codes, would be enough.
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
		// A provider asks for the factors that it wants.
		if !shown(ByProvider) && f.Passkeys+f.Apps > 0 {
			return Need{Missing: true, Possible: possible(f, true, false)}
		}
	}
	return Need{}
}

// codeIsSecond reports whether a recovery code alone does not let a person in (PE-06): a code from a
// drawer is not enough for a person with a role, nor where two factors are required.
func (p Policy) codeIsSecond(u storage.User, f storage.Factors) bool {
	return u.Role != "" || p.of(u, f) == Required
}

// CodeIsSecond reports whether a person needs another proof beside a recovery code.
func (w *Ways) CodeIsSecond(u storage.User, f storage.Factors) bool {
	return w.cfg.Policy.codeIsSecond(u, f)
}

// possible are the methods that a person can use.
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
