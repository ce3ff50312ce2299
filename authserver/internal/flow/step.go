package flow

import (
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/connect"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Step is what the browser gets next: it is one of the following types. A step is data; the
// edge writes it.
type Step interface{ step() }

// SignInStep is the step of a person who has to sign in, or to prove more, before the request goes on,
// and of one who has done so and goes on to where they were going.
type SignInStep struct{ entry.Step }

// ChooseAccount is the page on which a person who is signed in says as whom they answer.
type ChooseAccount struct{ Request Request }

// AskConsent is the page on which a person who is signed in decides about a request.
type AskConsent struct {
	Request Request
	Visit   storage.Visit
	// NothingChosen says that the person has approved, and granted nothing by it.
	NothingChosen bool
}

// Question is what the page asks.
func (a AskConsent) Question() policy.Question {
	return policy.Ask(a.Request.Resource.Resource, a.Request.Scopes, a.Visit.Consented)
}

// AskClearance is the page on which a person gives or denies a clearance, or is told for whom it waits,
// and goes on with the request.
type AskClearance struct {
	Request  Request
	ID       string       // of the clearance
	Session  storage.Hash // of the person, which may have begun with this request
	Approved *Consented   // nil: the consent page was not needed
}

// AskBeforeProvider is the page on which a person decides about a request who then signs in
// at a provider. Nothing is stored yet, and nothing has left.
type AskBeforeProvider struct {
	Request       Request
	EndNotice     string
	NothingChosen bool // see AskConsent
}

// Question is what the page asks.
func (a AskBeforeProvider) Question() policy.Question {
	return policy.Ask(a.Request.Resource.Resource, a.Request.Scopes, nil)
}

// AskBeforeReading is AskBeforeProvider for a client whose document is unread.
type AskBeforeReading struct{ Request Unread }

// ToProvider sends the browser to a provider's authorization endpoint. Only an approval
// leads here.
type ToProvider struct {
	Provider delegation.Provider
	UserID   string // who is signed in, "" for no person
	Request  delegation.AuthorizationRequest
}

// Respond sends the browser to the client with an authorization response.
type Respond struct {
	To       Identified
	Response url.Values
}

// ShowAnswer shows the person the authorization response, for a client on another computer. The
// browser goes nowhere (PE-14).
type ShowAnswer Respond

// Answered is the page for a person who answers once more what they have answered before, and whose
// first answer the client has: see grant.ErrAnswered.
type Answered struct{}

// RespondError sends the browser to the client with an error: to one of the operator, or
// to a place that this person has approved.
type RespondError struct {
	To  Identified
	Err error
}

// Stop is the page about a request that cannot be fulfilled, with a way to the client that the
// person may take.
type Stop struct {
	To  Identified
	Err error
}

// Fail is the page about a request whose client is unknown; no answer is sent to a client.
type Fail struct {
	Client storage.Client // as far as it is known
	Sent   string         // the redirect URI, as the request says
	Err    error
}

// ProviderFailed is the page about a sign-in at a provider that failed.
type ProviderFailed struct {
	Provider delegation.Provider
	To       entry.Destination // to try again
	Err      error
	// Came and Expected are accounts there, when the provider returned the wrong one.
	Came, Expected string
}

// ProviderFailedClient is ProviderFailed for a client to which the person has approved that
// the answer goes.
type ProviderFailedClient struct {
	ProviderFailed
	Client   Identified
	Told     error // Err as the client understands it
	Declined bool  // the person said no at the provider
}

// AskClaim is the page that asks whether an account at a provider is the person's.
type AskClaim struct {
	Claim    ClaimForm
	Provider delegation.Provider
	Username string
}

// AskConnect is the page on which a person lets a resource server have more of their account
// at a provider.
type AskConnect struct {
	Form     ConnectForm
	Request  connect.Request
	Provider delegation.Provider
	Resource storage.Resource
	Visit    storage.Visit
}

// EnterDeviceCode is the page on which a person types the code that a device shows them. Err says
// why the code that they have typed leads nowhere: device.ErrWrong, device.ErrThrottled.
type EnterDeviceCode struct {
	Code string // as it was typed, or that of a link; "" at first
	Err  error
}

// AskDevice is the page on which a person who is signed in decides about the request of a device.
type AskDevice struct {
	Form          DeviceForm
	Request       Request
	Question      policy.Question
	Device        storage.Device
	Visit         storage.Visit
	NothingChosen bool // see AskConsent
}

// DeviceDecided is the page after that.
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

// BadLink is the page about a link that is no good.
type BadLink struct{ Err error }

// NotYours is the page for a person who opened another person's link.
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
