package flow

import (
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/connect"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Step is the next response to the browser, one of the following types. A step is data; the edge
// writes it.
type Step interface{ step() }

// SignInStep asks the user to sign in or to authenticate again before the request continues. It
// also continues to the user's destination afterwards.
type SignInStep struct{ entry.Step }

// ChooseAccount is the page where a signed-in user chooses the account to continue with.
type ChooseAccount struct{ Request Request }

// AskConsent is the page where a signed-in user decides about a request.
type AskConsent struct {
	Request Request
	Visit   storage.Visit
	// NothingChosen reports that the user approved without choosing a scope.
	NothingChosen bool
}

// Question returns the page's question.
func (a AskConsent) Question() policy.Question {
	return policy.Ask(a.Request.Resource.Resource, a.Request.Scopes, a.Visit.Consented)
}

// AskClearance is the page where a user approves or denies a tool call. If someone else decides,
// the page names them and lets the user continue.
type AskClearance struct {
	Request  Request
	ID       string       // of the tool call approval
	Session  storage.Hash // of the user; it may have begun with this request
	Approved *Consented   // nil: no consent page was needed
}

// AskBeforeProvider is the page where a user decides about a request before they sign in at a
// provider. Until then, the server stores nothing and sends nothing.
type AskBeforeProvider struct {
	Request       Request
	EndNotice     sentence.Sentence
	NothingChosen bool // see AskConsent
}

// Question returns the page's question.
func (a AskBeforeProvider) Question() policy.Question {
	return policy.Ask(a.Request.Resource.Resource, a.Request.Scopes, nil)
}

// AskBeforeReading is AskBeforeProvider for a client whose metadata document has not been read.
type AskBeforeReading struct{ Request Unread }

// ToProvider sends the browser to a provider's authorization endpoint. It always follows an
// approval.
type ToProvider struct {
	Provider delegation.Provider
	UserID   string // the signed-in user, or ""
	Request  delegation.AuthorizationRequest
}

// Respond sends the browser to the client with an authorization response.
type Respond struct {
	To       Identified
	Response url.Values
}

// ShowAnswer shows the authorization response to the user, for a client on another computer. It
// does not redirect the browser (PE-14).
type ShowAnswer Respond

// Answered is the page for a user who answers a page twice after the client received the first
// answer. See grant.ErrAnswered.
type Answered struct{}

// RespondError sends the browser to the client with an error. The client was registered by the
// operator, or the user has approved its redirect URI.
type RespondError struct {
	To  Identified
	Err error
}

// Stop is the page about a request that cannot be fulfilled. It offers a link to the client.
type Stop struct {
	To  Identified
	Err error
}

// Fail is the page about a request whose client is unknown. It sends nothing to a client.
type Fail struct {
	Client storage.Client // as far as known
	Sent   string         // the redirect URI of the request
	Err    error
}

// ProviderFailed is the page about a sign-in at a provider that failed.
type ProviderFailed struct {
	Provider delegation.Provider
	To       entry.Destination // destination of another try
	Err      error
	// Came and Expected are accounts at the provider, set if it returned the wrong one.
	Came, Expected string
}

// ProviderFailedClient is ProviderFailed for a client whose redirect URI the user has approved.
type ProviderFailedClient struct {
	ProviderFailed
	Client   Identified
	Told     error // Err in a form for the client
	Declined bool  // the user declined at the provider
}

// AskClaim is the page that asks whether an account at a provider belongs to the user.
type AskClaim struct {
	Claim    ClaimForm
	Provider delegation.Provider
	Username string
}

// AskConnect is the page where a user grants a resource server more access to their account at a
// provider.
type AskConnect struct {
	Form     ConnectForm
	Request  connect.Request
	Provider delegation.Provider
	Resource storage.Resource
	Visit    storage.Visit
}

// EnterDeviceCode is the page where a user types the code that a device shows. Err reports why a
// typed code was refused: device.ErrWrong or device.ErrThrottled.
type EnterDeviceCode struct {
	Code string // as typed, or from a link; "" at first
	Err  error
}

// AskDevice is the page where a signed-in user decides about the request of a device.
type AskDevice struct {
	Form          DeviceForm
	Request       Request
	Question      policy.Question
	Device        storage.Device
	Visit         storage.Visit
	NothingChosen bool // see AskConsent
}

// DeviceDecided is the page after a decision about a device.
type DeviceDecided struct {
	Request Request
	Denied  bool
}

// Connected is the page after AskConnect.
type Connected struct {
	Provider delegation.Provider
	Resource storage.Resource
	Declined bool
}

// BadLink is the page about an invalid or expired link.
type BadLink struct{ Err error }

// NotYours is the page for a user who opened another user's link.
type NotYours struct{}

func (SignInStep) step()           {}
func (ChooseAccount) step()        {}
func (AskConsent) step()           {}
func (AskClearance) step()         {}
func (AskBeforeProvider) step()    {}
func (AskBeforeReading) step()     {}
func (ToProvider) step()           {}
func (Respond) step()              {}
func (ShowAnswer) step()           {}
func (Answered) step()             {}
func (RespondError) step()         {}
func (Stop) step()                 {}
func (Fail) step()                 {}
func (ProviderFailed) step()       {}
func (ProviderFailedClient) step() {}
func (AskClaim) step()             {}
func (AskConnect) step()           {}
func (Connected) step()            {}
func (EnterDeviceCode) step()      {}
func (AskDevice) step()            {}
func (DeviceDecided) step()        {}
func (BadLink) step()              {}
func (NotYours) step()             {}
