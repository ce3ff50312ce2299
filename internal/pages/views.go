package pages

import (
	"slices"
	"time"
)

// Party is a client or an MCP server on a page.
type Party struct {
	// Name is the display name, or "".
	Name string
	// Host identifies the party beyond its name. It is the host of an MCP server, or of a client's
	// metadata document.
	Host string
	// URL is the full address; for a client its client_id.
	URL string
}

// Scope is a permission that an application requests.
type Scope struct {
	Name, Description string
	Fixed             bool // not selectable
	Checked           bool // granted by an approval without changes
	Dangerous         bool
	Read              bool // granted by the preset "read only"
	Identity          bool // a scope of this server: the application learns the user's identity
}

// narrows reports whether a user can remove some of the scopes of a connection.
func narrows(scopes []Scope) bool {
	return slices.ContainsFunc(scopes, func(s Scope) bool { return !s.Fixed })
}

// Permissions lists the requested permissions on a consent page.
type Permissions struct {
	Scopes  []Scope
	Allowed []Scope // already granted
	// Choice means that the user can grant some of the scopes. ReadOnly means that there is a
	// preset for reading.
	Choice, ReadOnly bool
	// Risky means that some of the open scopes are dangerous, and OnlyRisky that all of them are.
	Risky, OnlyRisky bool
}

// Provider is an identity provider.
type Provider struct {
	Name string
	Icon string // "google", "github", ...; any other value: a neutral icon
	Host string // host that the browser is sent to
}

// Choice is a provider that a user can select: with a link to URL, or else with a form that posts
// Step to Action.
type Choice struct {
	Provider
	URL          string
	Action, Step string
}

// QR is a QR code: the d attribute of the path with its dark modules, and the side length of its
// viewBox including the quiet zone (package internal/qr).
type QR struct {
	Path  string
	Size  int
	Label Text // description for screen readers
}

// Login is the view of the sign-in page.
type Login struct {
	Action string // target of the form
	Step   string // sealed state, returned in the field "step"
	// Username refills the field after a failed attempt.
	Username string
	// Problem is the error of the last attempt, if any.
	Problem Text
	// EndNotice explains why the user is no longer signed in, if there is a special reason.
	EndNotice Text
	// Passkey is the form for a passkey; nil: passkeys are not available.
	Passkey *Passkey
	// Earlier lists forms for the passkeys of earlier hosts, which browsers offer separately.
	Earlier        []Passkey
	RecoveryAction string // target of the form that posts username, recovery and step
	// RemoteAction is the target that step is posted to for signing in with another device; "":
	// disabled.
	RemoteAction string
	// Choices lists the providers that can be used instead of a password.
	Choices    []Choice
	NoPassword bool // sign-in with a password is not offered
	// ForgottenURL is the page for requesting a new password; "": not offered.
	ForgottenURL string
	// Client and Resource show what the user signs in for. Both are empty for this server itself.
	Client, Resource Party
}

// Request is an application's request, on the pages where a user decides about it.
type Request struct {
	Client Party
	// SelfRegistered means that only the client itself vouches for its name.
	SelfRegistered bool
	// RedirectHost is the host that receives the response, or a private-use scheme with its colon
	// ("cursor:").
	RedirectHost       string
	RedirectIsLoopback bool
	RedirectURI        string
	Resource           Party
	Permissions
	NothingChosen bool // the user approved without selecting any scope
	// StaySignedIn means that the application keeps its access while the user is away.
	StaySignedIn bool
}

// Consent is the view of the approval page.
type Consent struct {
	Action, Step string
	Request
	Username   string
	AnotherURL string // page to choose another account
}

// Confirm is the view of the page that names the account before an application gets access to it.
type Confirm struct {
	Action, Step string
	Request
	Username string
	Provider Provider // where the user signed in
	Label    string   // the account's name there; "": unknown
	// AnotherURL is the page to choose another account; "": the form sends the browser back to the
	// provider.
	AnotherURL string
}

// SignedOut is the view of the page after signing out. If Step is set, other users are still signed
// in in the browser, and the form that signs them out posts it to Action.
type SignedOut struct{ Action, Step string }

// Signed is an account that is signed in in a browser. The form that selects it posts Step.
type Signed struct{ Username, Step string }

// Chooser is the view of the page where users choose an account.
type Chooser struct {
	Action           string
	Client, Resource Party
	Accounts         []Signed // the current one first
	AnotherURL       string   // page to sign in with another account
}

// Answer is the view of the page that shows an authorization response.
type Answer struct {
	Client  Party
	URL     string
	QR      QR  // no Path: the address is too long for a QR code
	Seconds int // seconds until it expires
}

// DeviceCode is the view of the page where a user types the code that a device shows.
type DeviceCode struct {
	Action  string // target of the form
	Code    string // as typed, or, without Problem, from a link; "" at first
	Problem Text   // the error of the last attempt
}

// Device is the view of the page where a user approves or denies a device's request.
type Device struct {
	Action, Step string
	Request
	Code string // as shown on the device
	// Agent is the device's self-description and Address its address. Near means that it is in the
	// user's network.
	Agent, Address string
	Near           bool
	Asked          time.Time
	Username       string
	// SignOutAction and SignOutStep are the form for "Use another account".
	SignOutAction, SignOutStep string
}

// DeviceDone is the view of the page after Device.
type DeviceDone struct {
	Client   Party
	Resource Party
	Denied   bool
}

// ProviderConsent is the view of the approval page for a user who then signs in at a provider.
type ProviderConsent struct {
	Action, Step string
	Request
	// Unread means that only the address of the application's metadata document is known. The user
	// then approves only signing in, and the consent page follows.
	Unread   bool
	Provider Provider
	// OtherURL links to the other ways to sign in, or is "".
	OtherURL  string
	EndNotice Text // see Login
}

// Fault names the side where a sign-in at a provider failed.
type Fault string

// The sides.
const (
	FaultPerson   Fault = ""         // the user: another account or answer may work
	FaultProvider Fault = "provider" // the provider is currently unreachable
	FaultSetup    Fault = "setup"    // the provider and this server are incompatible; the administrator must act
)

// Failed is the view of a failed sign-in at a provider.
type Failed struct {
	Message         Text
	Code, RequestID string
	Fault           Fault
	Provider        Provider
	// Came and Expected are accounts there, if the provider returned a different one than the
	// linked one.
	Came, Expected string
	Client         Party  // empty: no application was waiting
	RetryURL       string // page of this server to start again
	// ReturnURL is the redirect URI with the error response; see Stopped.
	ReturnURL            string
	ReturnIsCustomScheme bool
}

// Connect is the view of the page where a user grants an MCP server more access to their account at
// a provider.
type Connect struct {
	Action, Step string
	Resource     Party
	Provider     Provider
	Scopes       []string // the provider's names
	Username     string
	// SignOutAction and SignOutStep are the form for "Use another account".
	SignOutAction, SignOutStep string
}

// Claim is the view of the page that asks whether the account returned by a provider belongs to the
// user.
type Claim struct {
	Action, Step   string
	Provider       Provider
	Label, Subject string // the account's display name and the provider's identifier
	Username       string // the user signed in here
}

// Connected is the view of the page after Connect.
type Connected struct {
	Provider Provider
	Resource Party
	Declined bool // the user declined
}

// Error is the view of the error page.
type Error struct {
	Title, Message Text
	Client         string // name of the application, or a guess; may be empty
	Advice         Text   // the next step
	Home           bool   // show a link to the start page
	Code           string // protocol error code, such as invalid_client
	RequestID      string // identifies the event in the administrator's log
}

// Stopped is the view of a refused request with a link back to the application.
type Stopped struct {
	Title, Message Text
	Code           string
	Client         Party
	RedirectHost   string
	Advice         Text // the next step
	// ReturnURL is the redirect URI with the error response. It becomes a link only if it is http,
	// https or a private-use scheme.
	ReturnURL            string
	ReturnIsCustomScheme bool
	RequestID            string // identifies the event in the administrator's log
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
	// Token refills the token field after a failed attempt, because it is no longer in the address.
	Token string
}

// SetupDone is the view of the page after setup.
type SetupDone struct {
	Username, Issuer string
	Passkeys         bool // passkeys are available
	Second           bool // an administrator must first add a second factor
	Console          bool // the console is at this address
}

// Account is a user's account at a provider. The form that disconnects it posts Step and act
// (remove) to Action. Without Step, it is the only way to sign in.
type Account struct {
	ID string
	Provider
	Label        string // the user's name there
	Gone         bool   // the provider is no longer configured
	Began        bool   // the local account depends on it, and there are other ways to sign in
	Action, Step string
}

// Home is the view of the start page.
type Home struct {
	Username  string // "" if no user is signed in
	Issuer    string
	Resources []Party
	EndNotice Text     // see Login
	SignInURL string   // password sign-in page, if no user is signed in; "": not offered
	SignIn    []Choice // providers to sign in with, if no user is signed in
	// AccountURL is the account page of the signed-in user.
	AccountURL string
	// SignOutAction and Step are the sign-out form.
	SignOutAction, Step string
}
