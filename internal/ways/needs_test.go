package ways_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// TestNeeds tests the policy of second factors: the user's methods, the methods used, and the
// missing proof.
func TestNeeds(t *testing.T) {
	const (
		off, optional, required = ways.Off, ways.Optional, ways.Required
		none                    = "none"
		root                    = storage.Administrator
	)
	for _, c := range []struct {
		rule     string
		everyone ways.Demand
		admins   ways.Demand
		role     storage.Role
		enrolled bool   // another administrator has a second factor
		has      string // from passkey, app, codes, password
		by       string // methods used
		want     string // possible methods, or none (complete), enrol, refused
	}{
		{rule: "off wants nothing", everyone: off, has: "app password", by: "pwd", want: none},
		{
			rule: "the default wants it of those who have it",
			has:  "app passkey codes password", by: "pwd", want: "webauthn otp recovery",
		},
		{rule: "and of nobody else", has: "codes password", by: "pwd", want: none},
		{rule: "a passkey is two factors", everyone: required, has: "passkey", by: "webauthn", want: none},
		{rule: "so is a password with a code", everyone: required, has: "app password", by: "pwd otp", want: none},
		{
			rule: "or with a recovery code", everyone: required,
			has: "app codes password", by: "pwd recovery", want: none,
		},
		{
			rule: "EN-05 but not of a person who has lost nothing by it", everyone: required,
			has: "codes password", by: "pwd recovery", want: "enrol",
		},
		{
			rule: "EN-05 who is not asked for a code either", everyone: required,
			has: "codes password", by: "pwd", want: "enrol",
		},
		{
			rule: "EN-05 administrators: the same", admins: required, role: root,
			has: "codes password", by: "recovery pwd", want: "enrol",
		},
		{
			rule: "EN-05 where it is not required, a code stays a proof", has: "codes password",
			by: "pwd recovery", want: none,
		},
		{rule: "a code alone is not", everyone: required, has: "app password", by: "otp", want: "otp"},
		{
			rule: "required of those who have none: they enrol", everyone: required,
			has: "password", by: "pwd", want: "enrol",
		},
		{rule: "a provider asks for what it wants", has: "app", by: "fed", want: none},
		{rule: "unless it is required here", everyone: required, has: "app", by: "fed", want: "otp"},
		{rule: "what is not known counts as a password", has: "app", by: "", want: "otp"},
		{rule: "an operator's link lets in", everyone: required, has: "app", by: "link", want: none},
		{
			rule: "PE-06 a recovery code lets in whom it belongs to",
			has:  "app codes password", by: "recovery", want: none,
		},
		{
			rule: "PE-06 but is not two factors", everyone: required,
			has: "app codes password", by: "recovery", want: "otp pwd",
		},
		{
			rule: "PE-06 nor enough for an administrator", everyone: off, admins: off, role: root,
			has: "codes password", by: "recovery", want: "pwd",
		},
		{rule: "PE-06 however little they have", role: root, has: "codes", by: "recovery", want: "refused"},
		{rule: "PE-06 with a password it is", role: root, has: "app codes password", by: "recovery pwd", want: none},
		{rule: "administrators: nothing until one has enrolled", role: root, has: "password", by: "pwd", want: none},
		{
			rule: "administrators: required as soon as one has", role: root, enrolled: true,
			has: "password", by: "pwd", want: "enrol",
		},
		{rule: "of the others it is not", enrolled: true, has: "password", by: "pwd", want: none},
		{
			rule: "even where it is off for all others", everyone: off, role: root,
			has: "app password", by: "pwd", want: "otp",
		},
		{
			rule: "unless it is off for them", everyone: required, admins: off, role: root,
			has: "app password", by: "pwd", want: none,
		},
		{rule: "or optional", admins: optional, role: root, enrolled: true, has: "password", by: "pwd", want: none},
		{
			rule: "OB-10 auditors: the same", role: storage.Auditor, enrolled: true,
			has: "password", by: "pwd", want: "enrol",
		},
		{
			rule: "OB-10 support: a code alone is not enough", everyone: off, admins: off, role: storage.Support,
			has: "codes password", by: "recovery", want: "pwd",
		},
		{
			rule: "required of administrators alone", everyone: off, admins: required, role: root,
			has: "password", by: "pwd", want: "enrol",
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := newRig(t)
			site, err := ways.NewSite(issuer, "", nil)
			r.must(err)
			r.Ways, err = ways.New(ways.Config{
				Store: r.Store, Ring: r.ring, Site: site, Policy: ways.Policy{Everybody: c.everyone, Admins: c.admins},
				Guesses: r.users, Passwords: true, Now: r.Now,
			})
			r.must(err)
			r.alice = r.account("ann", c.role)
			if strings.Contains(c.has, "passkey") {
				r.enrol(r.alice, r.phone)
			}
			if strings.Contains(c.has, "app") {
				r.app()
			}
			if strings.Contains(c.has, "codes") {
				_, err := r.NewRecoveryCodes(t.Context(), r.alice.ID)
				r.must(err)
			}
			if strings.Contains(c.has, "password") {
				r.must(r.Store.SetPassword(t.Context(), r.alice.ID, "$hash", false, r.Now()))
			}
			if c.enrolled {
				r.enrol(r.account("root", root), authkit.New(issuer))
			}
			got, err := r.Needs(t.Context(), r.alice, strings.Fields(c.by))
			r.must(err)
			want := ways.Need{Missing: c.want != none, Enrol: c.want == "enrol"}
			if !slices.Contains([]string{none, "enrol", "refused"}, c.want) {
				want.Possible = strings.Fields(c.want)
			}
			if got.Missing != want.Missing || got.Enrol != want.Enrol || !slices.Equal(got.Possible, want.Possible) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
