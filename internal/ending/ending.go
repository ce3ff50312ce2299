// Package ending lists the pending items that each act ends: items that can become access later.
// Package storagetest tries each pair on both stores.
package ending

import "strings"

// Waiting is a pending item that can become access later.
type Waiting string

// The pending items.
const (
	Code             Waiting = "code of an application"
	DeviceCode       Waiting = "code of a device, approved"
	DeviceRequest    Waiting = "code of a device, undecided"
	PushedRequest    Waiting = "pushed request"
	Page             Waiting = "page of an approval, open in a session"
	Consent          Waiting = "connection without a page"
	CallWaits        Waiting = "approval of a tool call, undecided"
	CallGiven        Waiting = "approval of a tool call, given"
	RecoveryLink     Waiting = "recovery link"
	ResetLink        Waiting = "link for a forgotten password"
	Invitation       Waiting = "invitation"
	SetupLink        Waiting = "setup link"
	SignIn           Waiting = "sign-in before its second step"
	PasskeyChallenge Waiting = "sign-in with a passkey, unanswered"
	RemoteSignIn     Waiting = "sign-in by another device, approved"
	Departure        Waiting = "trip to a provider"
	Assertion        Waiting = "assertion of an issuer"
	Notice           Waiting = "notice of a change"
)

// Everything returns all pending items, in the order of the table.
func Everything() []Waiting {
	return []Waiting{
		Code, DeviceCode, DeviceRequest, PushedRequest, Page, Consent, CallWaits, CallGiven, RecoveryLink,
		ResetLink, Invitation, SetupLink, SignIn, PasskeyChallenge, RemoteSignIn, Departure, Assertion, Notice,
	}
}

// Act is an action that ends access.
type Act string

// The acts.
const (
	Disconnect     Act = "*Disconnect*, `grant revoke ID`"
	Narrow         Act = "*Fewer permissions*, `grant narrow`"
	Pause          Act = "*Pause*, `grant pause`, until *Resume*"
	ClientRevokes  Act = "the application revokes its token"
	CutPerson      Act = "`grant revoke --user`"
	NewPassword    Act = "new password by the person, `user passwd --keep-grants`"
	Passwd         Act = "`user passwd`"
	SetMail        Act = "`user set-mail`"
	Disable        Act = "`user disable`, also after `user enable`"
	DeleteUser     Act = "`user delete`"
	StopEverything Act = "*Stop everything*"
	Recovery       Act = "use of a recovery link"
	Reset          Act = "use of a link for a forgotten password"
	SignOut        Act = "*Sign out*, *End* of a sign-in"
	DeleteClient   Act = "`client delete`"
	RotateSecret   Act = "`client rotate-secret`"
)

// Row lists the items that an act ends, and why the act keeps the others.
type Row struct {
	Act   Act
	Ends  []Waiting
	Keeps []Kept
	// EndsPause reports whether the act ends the pause of an application. New access then needs a
	// new decision, because the act also ends consents or the account.
	EndsPause bool
}

// Kept lists items that an act does not end, with the reason.
type Kept struct {
	Why     string
	Waiting []Waiting
}

// The reasons that apply to several items.
const (
	undecided   = "a person has to decide about it"
	noAccount   = "it is not of this account"
	toTell      = "it tells the person what happened"
	ofPerson    = "it is the person's, and no application's"
	connected   = "applications stay connected"
	sameWays    = "the ways in of the person are as good as before"
	operators   = "it is the operator's, who withdraws it with `user links withdraw`"
	againByThem = "the organization can give it again at any time"
)

// Table returns one row per act.
func Table() []Row {
	grants := []Waiting{Code, DeviceCode, Consent, CallWaits, CallGiven}
	begun := []Waiting{Page, SignIn, PasskeyChallenge, RemoteSignIn, Departure}
	signIns := []Waiting{Page, RecoveryLink, ResetLink, SignIn, PasskeyChallenge, RemoteSignIn, Departure}
	all := concat(grants, begun, []Waiting{ResetLink, Assertion})
	untouched := []Kept{
		{undecided, []Waiting{DeviceRequest, PushedRequest}}, {noAccount, []Waiting{Invitation, SetupLink}},
		{toTell, []Waiting{Notice}},
	}
	of := func(act Act, ends []Waiting, keeps ...Kept) Row {
		return Row{Act: act, Ends: ends, Keeps: append(keeps, untouched...)}
	}
	ending := func(r Row) Row {
		r.EndsPause = true
		return r
	}
	return []Row{
		ending(of(Disconnect, grants, Kept{ofPerson, signIns}, Kept{againByThem, []Waiting{Assertion}})),
		of(Narrow, []Waiting{Code, DeviceCode, Consent}, Kept{ofPerson, signIns},
			Kept{"a call needs the permission for it as well", []Waiting{CallWaits, CallGiven}},
			Kept{againByThem, []Waiting{Assertion}}),
		{Act: Pause, Ends: append([]Waiting{DeviceRequest, Page, Assertion}, grants...), Keeps: []Kept{
			{"the page that it leads to says that it is paused", []Waiting{PushedRequest}},
			{ofPerson, []Waiting{RecoveryLink, ResetLink, SignIn, PasskeyChallenge, RemoteSignIn, Departure}},
			{noAccount, []Waiting{Invitation, SetupLink}}, {toTell, []Waiting{Notice}},
		}},
		of(ClientRevokes, []Waiting{CallWaits, CallGiven}, Kept{ofPerson, signIns},
			Kept{"the application gives up what it has, and may connect again",
				[]Waiting{Code, DeviceCode, Consent, Assertion}}),
		ending(of(CutPerson, append([]Waiting{Assertion}, grants...), Kept{ofPerson, signIns})),
		of(NewPassword, []Waiting{Page, ResetLink, SignIn, RemoteSignIn},
			Kept{connected, append([]Waiting{Assertion}, grants...)},
			Kept{sameWays, []Waiting{PasskeyChallenge, Departure}}, Kept{operators, []Waiting{RecoveryLink}}),
		of(Passwd, all, Kept{operators, []Waiting{RecoveryLink}}),
		of(SetMail, []Waiting{ResetLink}, Kept{connected, append([]Waiting{Assertion}, grants...)},
			Kept{sameWays, begun}, Kept{operators, []Waiting{RecoveryLink}}),
		of(Disable, append([]Waiting{RecoveryLink}, all...)),
		{DeleteUser, append([]Waiting{RecoveryLink, Notice}, all...), untouched[:2], true},
		ending(of(StopEverything, all, Kept{operators, []Waiting{RecoveryLink}})),
		of(Recovery, append([]Waiting{RecoveryLink}, all...)),
		of(Reset, all, Kept{operators, []Waiting{RecoveryLink}}),
		of(SignOut, []Waiting{Page, RemoteSignIn}, Kept{connected, append([]Waiting{Assertion}, grants...)},
			Kept{"it does not rest on that session",
				[]Waiting{RecoveryLink, ResetLink, SignIn, PasskeyChallenge, Departure}}),
		{Act: DeleteClient, Ends: append([]Waiting{DeviceRequest, Page, Assertion}, grants...), Keeps: []Kept{
			{"the page that it leads to finds no application", []Waiting{PushedRequest}},
			{ofPerson, []Waiting{RecoveryLink, ResetLink, SignIn, PasskeyChallenge, RemoteSignIn, Departure}},
			{noAccount, []Waiting{Invitation, SetupLink}}, {toTell, []Waiting{Notice}},
		}},
		of(RotateSecret, nil, Kept{"nothing is given without the new secret",
			append([]Waiting{Assertion}, grants...)}, Kept{ofPerson, signIns}),
	}
}

func concat(lists ...[]Waiting) (out []Waiting) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// Markdown returns the table in the form that the threat model contains.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| act | ends | keeps, and why | a pause |\n|---|---|---|---|\n")
	for _, r := range Table() {
		var keeps []string
		for _, k := range r.Keeps {
			keeps = append(keeps, joined(k.Waiting)+" ("+k.Why+")")
		}
		cells := []string{string(r.Act), joined(r.Ends), strings.Join(keeps, "; "), lasts(r)}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

func lasts(r Row) string {
	switch {
	case r.Act == Pause:
		return "begins"
	case r.EndsPause:
		return "ends"
	}
	return "lasts"
}

func joined(list []Waiting) string {
	if len(list) == 0 {
		return "nothing"
	}
	text := make([]string, len(list))
	for i, w := range list {
		text[i] = string(w)
	}
	return strings.Join(text, ", ")
}
