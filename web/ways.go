package web

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Passkey is a form that a passkey fills in, by script: it posts step and credential. Nothing else on
// our pages needs script (PE-12).
type Passkey struct {
	Action, Step string
	// Options are those of the ceremony in JSON, as browsers read them (WebAuthn §5.1.10); "": passkeys
	// cannot be used here.
	Options string
	// Unknown is the credential that was presented and is not known here; its authenticator is told.
	Unknown string
	// Host is the earlier host whose passkeys are asked for (WebAuthn §5.11); "": those of this one.
	Host string
}

// Second is the view of the page between a first proof and a second one. Its forms post step with
// code or recovery.
type Second struct {
	Action, Step  string
	Username      string
	SignedIn      bool // the person is signed in, and what follows needs more
	Problem       Text
	Passkey       *Passkey // nil: the person has none
	App, Recovery bool
	Password      bool
}

// Prove is the view of the page on which a person who is signed in proves again who they are. Its
// forms post step with password or code.
type Prove struct {
	Action, Step  string
	Username      string
	Problem       Text
	Passkey       *Passkey
	Choices       []Choice // the providers at which the person has an account
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

// AddApp is the view of the page that adds an authenticator app. Its form posts step, code and name.
type AddApp struct {
	Action, Step string
	QR           QR
	Secret       []string // in groups of four
	Name         string
	Problem      Text
	BackURL      string
}

// RecoveryCodes is the view of the page that makes recovery codes, and with Codes of the one that
// shows them, once.
type RecoveryCodes struct {
	Action, Step string
	Left         int  // of the earlier ones, which end
	Second       bool // a code alone does not sign the person in
	Codes        []string
	Title        string // of the file
	BackURL      string
}

// File is the codes as a text to keep.
func (v RecoveryCodes) File() template.URL {
	text := v.Title + "\r\n\r\n" + strings.Join(v.Codes, "\r\n") + "\r\n"
	return template.URL("data:text/plain;charset=utf-8," + url.PathEscape(text)) // #nosec G203 -- escaped here
}

// FileName is what it is saved as.
func (v RecoveryCodes) FileName() string { return "recovery-codes.txt" }

// NewPassword is the view of the page on which a person sets another password.
type NewPassword struct {
	Action, Step string
	Username     string
	Problem      Text
	BackURL      string
}

// WayAdded is the view of the page after the first way that was added: it proposes a second one.
type WayAdded struct {
	Name                 string
	RecoveryURL, BackURL string
}

// EnrolFirst is the view of the page for a person who has to add a passkey or an app first.
type EnrolFirst struct {
	PasskeyURL string // "": passkeys do not work here
	AppURL     string // "": an app does not suffice
	Demanded   bool   // by what the application asks for, not for each sign-in
}

// Ways is the view of the ways in of a person, a part of their account page. Its forms post step, act
// (rename or remove) and name.
type Ways struct {
	Action   string
	List     []Way
	Password *PasswordWay // nil: the person has none
	Accounts []Account    // at providers
	Connect  []Choice     // the providers that can be connected
	Recovery int          // codes that are left
	// RecoveryStep is for the form that removes them; "": they are the only way in.
	RecoveryStep string
	Refused      Text // why passkeys cannot be used here
	// Accepted tell authenticators which passkeys there are, each of one relying party, in JSON.
	Accepted                        []string
	PasskeyURL, AppURL, RecoveryURL string
}

// Disconnects reports whether there is an account that can be disconnected.
func (v Ways) Disconnects() bool {
	return slices.ContainsFunc(v.Accounts, func(a Account) bool { return a.Step != "" })
}

// Way is a passkey or an authenticator app of a person.
type Way struct {
	ID, Name, Step string
	App            bool
	Elsewhere      string // the host that a passkey was made for, when it cannot be used here
	Added, Used    time.Time
}

// PasswordWay is the password of a person.
type PasswordWay struct{ URL, Step string }

// Second shows what follows a first proof.
func (p *Pages) Second(w http.ResponseWriter, status int, v Second) {
	p.show(w, status, "second", v,
		policy{leaves: true, keepOpener: true, script: v.Passkey != nil})
}

// Prove asks a person who is signed in to prove again who they are.
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

// RecoveryCodes shows recovery codes, or what they are.
func (p *Pages) RecoveryCodes(w http.ResponseWriter, v RecoveryCodes) {
	p.show(w, http.StatusOK, "recoverycodes", v, policy{script: true})
}

// NewPassword shows the form for another password.
func (p *Pages) NewPassword(w http.ResponseWriter, status int, v NewPassword) {
	p.show(w, status, "newpassword", v, policy{script: true})
}

// WayAdded shows that a way was added, and proposes another one.
func (p *Pages) WayAdded(w http.ResponseWriter, v WayAdded) {
	p.show(w, http.StatusOK, "wayadded", v, policy{script: true})
}

// EnrolFirst shows that a passkey or an app is required.
func (p *Pages) EnrolFirst(w http.ResponseWriter, v EnrolFirst) {
	p.show(w, http.StatusOK, "enrolfirst", v, policy{keepOpener: true})
}
