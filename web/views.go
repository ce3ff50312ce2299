package web

import (
	"slices"
	"time"
)

// Party is a client or an MCP server as pages show it.
type Party struct {
	// Name is the display name. Empty means that it has none.
	Name string
	// Host identifies the party beyond its name: for an MCP server its host, for a client that is
	// identified by a document the host of that document.
	Host string
	// URL is the full address, for a client its client_id.
	URL string
}

// Scope is one thing that an application asks for.
type Scope struct {
	Name, Description string
	Fixed             bool // there is nothing to choose about it
	Checked           bool // an approval that changes nothing grants it
	Dangerous         bool
	Read              bool // it is granted by the preset "read only"
	Identity          bool // ours, with a text of ours: the application learns who the person is
}

// narrows reports whether a person can leave out some of the scopes of a connection.
func narrows(scopes []Scope) bool {
	return slices.ContainsFunc(scopes, func(s Scope) bool { return !s.Fixed })
}

// Permissions are what an application asks for in a consent page.
type Permissions struct {
	Scopes  []Scope
	Allowed []Scope // what it may do already
	// Choice says that the person can grant some of the scopes; ReadOnly, that there is a preset for
	// reading.
	Choice, ReadOnly bool
}

// Provider is an identity provider that people sign in with.
type Provider struct {
	Name string
	Icon string // "google", "github", ...; any other word: a neutral icon
	Host string // where the browser goes
}

// Choice is a provider that a person can pick: by a link to URL, or else by a form that
// posts Step to Action.
type Choice struct {
	Provider
	URL          string
	Action, Step string
}

// QR is a QR code: the d of the path that draws its dark modules, and the side of its viewBox with
// the quiet zone (package internal/qr).
type QR struct {
	Path  string
	Size  int
	Label Text // what the picture is, for people who do not see it
}

// Login is the view of the sign-in page.
type Login struct {
	Action string // where the form is posted
	Step   string // sealed state, returned in the field "step"
	// Username fills the field again after a failed attempt.
	Username string
	// Problem says what was wrong with the last attempt; nothing at first.
	Problem Text
	// EndNotice says why the person is no longer signed in; nothing for no special reason.
	EndNotice Text
	// Passkey is the form for a passkey; nil: passkeys do not work here.
	Passkey *Passkey
	// Earlier are forms for the passkeys of earlier hosts, which a browser offers apart.
	Earlier        []Passkey
	RecoveryAction string // where the form is posted that has username, recovery and step
	// RemoteAction is where step is posted to sign in with another device; "": that is turned off.
	RemoteAction string
	// Choices are the providers to sign in with instead of a password.
	Choices    []Choice
	NoPassword bool // accounts with a password are not offered
	// ForgottenURL is where a person asks for a new password; "": nowhere.
	ForgottenURL string
	// Client and Resource say what the person signs in for; both empty: for this
	// server itself.
	Client, Resource Party
}

// Request is what an application asks for, on the pages where a person decides about it.
type Request struct {
	Client Party
	// SelfRegistered says that only the client itself vouches for its name.
	SelfRegistered bool
	// RedirectHost is the host the answer goes to, or a private-use scheme with its
	// colon ("cursor:").
	RedirectHost       string
	RedirectIsLoopback bool
	RedirectURI        string
	Resource           Party
	Permissions
	NothingChosen bool // the person approved, and had chosen nothing
	// StaySignedIn says that the application keeps its access while the person is away.
	StaySignedIn bool
}

// Consent is the view of the approval page.
type Consent struct {
	Action, Step string
	Request
	Username   string
	AnotherURL string // where to choose another account
}

// Confirm is the view of the page that names the account before an application gets access with it.
type Confirm struct {
	Action, Step string
	Request
	Username string
	Provider Provider // where the person signed in
	Label    string   // the account's name there; "" if the provider gives none
	// AnotherURL is where to choose another account; "": the form sends the browser back to the provider.
	AnotherURL string
}

// SignedOut is the view of the page after signing out. With Step, other people are still signed in
// in the browser; the form that signs them out posts it to Action.
type SignedOut struct{ Action, Step string }

// Signed is an account that is signed in in a browser. The form that chooses it posts Step.
type Signed struct{ Username, Step string }

// Chooser is the view of the page on which people say with which account they go on.
type Chooser struct {
	Action           string
	Client, Resource Party
	Accounts         []Signed // the current one first
	AnotherURL       string   // where to sign in with another account
}

// Answer is the view of the page that shows an authorization response.
type Answer struct {
	Client  Party
	URL     string
	QR      QR  // without a Path: the address is too long for one
	Seconds int // for which it is good
}

// DeviceCode is the view of the page on which a person types the code that a device shows them.
type DeviceCode struct {
	Action  string // where the form leads
	Code    string // as it was typed, or, with no Problem, that of a link; "" at first
	Problem Text   // says what was wrong with it
}

// Device is the view of the page on which a person decides about the request of a device.
type Device struct {
	Action, Step string
	Request
	Code string // as the device shows it
	// Agent is what the device calls itself, Address where it asks from, and Near says that this is
	// the network that the person is in.
	Agent, Address string
	Near           bool
	Asked          time.Time
	Username       string
	// SignOutAction and SignOutStep are the form behind "Use another account".
	SignOutAction, SignOutStep string
}

// DeviceDone is the view of the page after Device.
type DeviceDone struct {
	Client   Party
	Resource Party
	Denied   bool
}

// ProviderConsent is the view of the approval page of a person who then signs in at a provider.
type ProviderConsent struct {
	Action, Step string
	Request
	// Unread says that only the address of the application's metadata document is known; the person
	// then approves signing in, and the consent page follows.
	Unread   bool
	Provider Provider
	// OtherURL leads to the other ways to sign in, "" if there are none.
	OtherURL  string
	EndNotice Text // see Login
}

// Fault says on whose side a sign-in at a provider failed.
type Fault string

// The sides.
const (
	FaultPerson   Fault = ""         // the person's: another account, or another answer, may work
	FaultProvider Fault = "provider" // it cannot be reached for now
	FaultSetup    Fault = "setup"    // it and this server do not work together: for the operator
)

// Failed is the view of a sign-in at a provider that did not work out.
type Failed struct {
	Message         Text
	Code, RequestID string
	Fault           Fault
	Provider        Provider
	// Came and Expected are accounts there, when the provider returned another one than the
	// connected one.
	Came, Expected string
	Client         Party  // empty: no application was waiting
	RetryURL       string // our own page to start again
	// ReturnURL is the redirect URI with the error response; see Stopped.
	ReturnURL            string
	ReturnIsCustomScheme bool
}

// Connect is the view of the page on which a person lets an MCP server have more of their
// account at a provider.
type Connect struct {
	Action, Step string
	Resource     Party
	Provider     Provider
	Scopes       []string // by the provider's names
	Username     string
	// SignOutAction and SignOutStep are the form behind "Use another account".
	SignOutAction, SignOutStep string
}

// Claim is the view of the page that asks whether the account that a provider returned is the
// person's.
type Claim struct {
	Action, Step   string
	Provider       Provider
	Label, Subject string // the name that the account gives itself, and the provider's identifier of it
	Username       string // who is signed in here
}

// Connected is the view of the page after Connect.
type Connected struct {
	Provider Provider
	Resource Party
	Declined bool // the person declined
}

// Error is the view of the error page.
type Error struct {
	Title, Message Text
	Client         string // the name of the application, or a guess at it; may be empty
	Advice         Text   // what to do next
	Home           bool   // offer a link to the start page
	Code           string // the protocol's name for it, such as invalid_client
	RequestID      string // finds the event in the operator's log
}

// Stopped is the view of a refused request with a way back to the application.
type Stopped struct {
	Title, Message Text
	Code           string
	Client         Party
	RedirectHost   string
	Advice         Text // what to do next
	// ReturnURL is the redirect URI with the error response. It becomes a link only
	// if it is http, https or a private-use scheme.
	ReturnURL            string
	ReturnIsCustomScheme bool
	RequestID            string // finds the event in the operator's log
}

// Handoff is the view of the page that opens an application after approval.
type Handoff struct {
	Client      Party
	URL, Scheme string
}

// Setup is the view of the page that creates the first account.
type Setup struct {
	Action, Step string
	Username     string
	Problem      Text
	// Token fills the token field again after a failed attempt: by then it is gone
	// from the address.
	Token string
}

// SetupDone is the view of the page after setup.
type SetupDone struct {
	Username, Issuer string
	Passkeys         bool // they work here
	Second           bool // an administrator has to add a second factor before anything else
	Console          bool // it is at this address
}

// Account is a person's account at a provider. The form that disconnects it posts Step and act
// (remove) to Action; without Step it is the only way in.
type Account struct {
	ID string
	Provider
	Label        string // the person's name there
	Gone         bool   // the provider is not in the configuration any more
	Began        bool   // the account here rests on it, and there are other ways in
	Action, Step string
}

// Home is the view of the start page.
type Home struct {
	Username  string // "" when no person is signed in
	Issuer    string
	Resources []Party
	EndNotice Text     // see Login
	SignInURL string   // where to sign in with a password, for a person who is not signed in; "": nowhere
	SignIn    []Choice // the providers to sign in with, for a person who is not signed in
	// AccountURL is the account page of the person who is signed in.
	AccountURL string
	// SignOutAction and Step are the sign-out form.
	SignOutAction, Step string
}
