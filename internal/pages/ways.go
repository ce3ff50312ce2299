package pages

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Passkey is a form that a script fills in with a passkey: it posts step and credential. Nothing
// else on the pages needs script (PE-12).
type Passkey struct {
	Action, Step string
	// Options are the options of the ceremony in JSON, as browsers parse them (WebAuthn §5.1.10);
	// "": passkeys are not available here.
	Options string
	// Unknown is a presented credential that is not registered here. The page reports it to the
	// authenticator.
	Unknown string
	// Host is the earlier host of the requested passkeys (WebAuthn §5.11); "": this host.
	Host string
}

// Second is the view of the page between the first and the second factor. Its forms post step with
// code or recovery.
type Second struct {
	Action, Step  string
	Username      string
	SignedIn      bool // the user is signed in, and the next step needs more
	Problem       Text
	Passkey       *Passkey // nil: the user has no passkey
	App, Recovery bool
	Password      bool
}

// Prove is the view of the page where a signed-in user authenticates again. Its forms post step
// with password or code.
type Prove struct {
	Action, Step  string
	Username      string
	Problem       Text
	Passkey       *Passkey
	Choices       []Choice // providers where the user has an account
	Password, App bool
	BackURL       string
}

// AddPasskey is the view of the page that adds a passkey. Its form posts step, name and credential.
type AddPasskey struct {
	Passkey
	Name    string
	Problem Text
	BackURL string
}

// AddApp is the view of the page that adds an authenticator app. Its form posts step, code and
// name.
type AddApp struct {
	Action, Step string
	QR           QR
	Secret       []string // in groups of four
	Name         string
	Problem      Text
	BackURL      string
}

// RecoveryCodes is the view of the page that creates recovery codes. If Codes is set, the page
// shows them, once.
type RecoveryCodes struct {
	Action, Step string
	Left         int  // number of earlier codes, which become invalid
	Second       bool // a code alone does not sign the user in
	Codes        []string
	Title        string // title of the file
	BackURL      string
}

// File returns the codes as a text file to save.
func (v RecoveryCodes) File() template.URL {
	text := v.Title + "\r\n\r\n" + strings.Join(v.Codes, "\r\n") + "\r\n"
	return template.URL("data:text/plain;charset=utf-8," + url.PathEscape(text)) // #nosec G203 -- escaped here
}

// FileName returns the name of that file.
func (v RecoveryCodes) FileName() string { return "recovery-codes.txt" }

// NewPassword is the view of the page where a user changes the password.
type NewPassword struct {
	Action, Step string
	Username     string
	Problem      Text
	BackURL      string
}

// WayAdded is the view of the page after the first authentication method was added. It suggests a
// second one.
type WayAdded struct {
	Name                 string
	RecoveryURL, BackURL string
}

// EnrolFirst is the view of the page for a user who must first add a passkey or an app.
type EnrolFirst struct {
	PasskeyURL string // "": passkeys are not available here
	AppURL     string // "": an app is not sufficient
	Demanded   bool   // required by the application's request, not for every sign-in
}

// Ways is the view of a user's authentication methods, a part of the account page. Its forms post
// step, act (rename or remove) and name.
type Ways struct {
	Action   string
	List     []Way
	Password *PasswordWay // nil: the user has no password
	Accounts []Account    // at providers
	Connect  []Choice     // providers that can be linked
	Recovery int          // remaining codes
	// RecoveryStep is for the form that removes the codes; "": they are the only way to sign in.
	RecoveryStep string
	Refused      Text // why passkeys are not available here
	// Accepted lists the valid passkeys for authenticators, one JSON text per relying party.
	Accepted                        []string
	PasskeyURL, AppURL, RecoveryURL string
}

// Disconnects reports whether there is an account that can be disconnected.
func (v Ways) Disconnects() bool {
	return slices.ContainsFunc(v.Accounts, func(a Account) bool { return a.Step != "" })
}

// Way is a passkey or an authenticator app of a user.
type Way struct {
	ID, Name, Step string
	App            bool
	Elsewhere      string // host of a passkey that cannot be used here
	Added, Used    time.Time
}

// PasswordWay is the password of a user.
type PasswordWay struct{ URL, Step string }

// Second shows the page after the first factor.
func (p *Pages) Second(w http.ResponseWriter, status int, v Second) {
	p.show(w, status, "second", v,
		policy{leaves: true, keepOpener: true, script: v.Passkey != nil})
}

// Prove asks a signed-in user to authenticate again.
func (p *Pages) Prove(w http.ResponseWriter, status int, v Prove) {
	p.show(w, status, "prove", v, policy{leaves: true, script: v.Passkey != nil})
}

// AddPasskey shows how to add a passkey.
func (p *Pages) AddPasskey(w http.ResponseWriter, status int, v AddPasskey) {
	p.show(w, status, "addpasskey", v, policy{leaves: true, script: true})
}

// AddApp shows how to add an authenticator app.
func (p *Pages) AddApp(w http.ResponseWriter, status int, v AddApp) {
	p.show(w, status, "addapp", v, policy{leaves: true, script: true})
}

// RecoveryCodes shows recovery codes, or explains them.
func (p *Pages) RecoveryCodes(w http.ResponseWriter, v RecoveryCodes) {
	p.show(w, http.StatusOK, "recoverycodes", v, policy{script: true})
}

// NewPassword shows the form for changing the password.
func (p *Pages) NewPassword(w http.ResponseWriter, status int, v NewPassword) {
	p.show(w, status, "newpassword", v, policy{script: true})
}

// WayAdded shows that a method was added, and suggests another one.
func (p *Pages) WayAdded(w http.ResponseWriter, v WayAdded) {
	p.show(w, http.StatusOK, "wayadded", v, policy{script: true})
}

// EnrolFirst shows that a passkey or an app is required.
func (p *Pages) EnrolFirst(w http.ResponseWriter, v EnrolFirst) {
	p.show(w, http.StatusOK, "enrolfirst", v, policy{keepOpener: true})
}
