package authserver

import (
	"net/http"
	"net/netip"
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Purposes of forms. A form is valid only for its purpose.
const (
	purposeLogin           = "login"
	purposeConsent         = "consent"
	purposeLogout          = "logout"
	purposeSetup           = "setup"
	purposeProviderConsent = "leave"         // consent before a sign-in at a provider: at /consent
	purposeConfirm         = "confirm"       // the account that an application gets: at /consent
	purposePaused          = "paused"        // a paused application
	purposeProvider        = "depart"        // a sign-in at a provider without a client: at /depart
	purposeConnect         = "connect"       // a request of a resource server
	purposeDisconnect      = "disconnect"    // an account at a provider
	purposeClaim           = "claim"         // an account that a provider returned
	purposeDevice          = "device"        // the request of a device
	purposeLink            = "link"          // a one-time link
	purposeNotices         = "notices"       // notices of account changes
	purposeForgotten       = "forgotten"     // a forgotten password
	purposeChoose          = "choose"        // one of the signed-in accounts
	purposePasskey         = "passkey"       // a sign-in with a passkey
	purposeSecond          = "second"        // a sign-in that waits for a second factor
	purposeRemote          = "await remote"  // a browser to be signed in from another device
	purposeRemoteDecision  = "decide remote" // the user's decision about it
	purposeProve           = "prove"         // authenticating again
	purposeTo              = "to"            // a page's destination
	purposePasskeyAdd      = "add passkey"
	purposeAppAdd          = "add app"
	purposeRecovery        = "recovery codes"
	purposePassword        = "password"
	purposeWay             = "way"       // renaming or removing one
	purposeClearance       = "clearance" // one tool call
	purposeAccount         = "account"   // actions of the account page
	purposeDone            = "done"      // their outcome
	purposeKey             = "key"       // an API key
)

// pageForms reads the forms of pages. Each form contains a state, sealed and bound to the browser.
type pageForms struct {
	sessions *session.Manager
	errors   *errorPages
	proxies  TrustedProxies
}

// read reads a form. If it returns false, it has sent a response.
func (f *pageForms) read(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	form, err := readBody(r)
	switch {
	case err == errTooLarge:
		f.errors.show(w, r, http.StatusRequestEntityTooLarge,
			sentence.NewError(oauth.InvalidRequest, "The form is too large.", "form_large"))
	case err != nil:
		f.errors.show(w, r, http.StatusBadRequest, err)
	}
	return form, err == nil
}

// open reads a form and its sealed state. If it returns false, it has sent a response.
func (f *pageForms) open(w http.ResponseWriter, r *http.Request, purpose string, state any) (url.Values, bool) {
	form, ok := f.read(w, r)
	if !ok {
		return nil, false
	}
	if err := f.unseal(w, r, purpose, form.Get("step"), state); err != nil {
		f.errors.stale(w, r)
		return nil, false
	}
	return form, true
}

// unseal reads a state that was sealed for this browser.
func (f *pageForms) unseal(w http.ResponseWriter, r *http.Request, purpose, sealed string, state any) error {
	return f.sessions.As(w, r, func(browser string) error {
		return f.sessions.OpenStep(purpose, browser, sealed, state)
	})
}

func (f *pageForms) seal(w http.ResponseWriter, r *http.Request, purpose string, state any) (string, error) {
	return f.sessions.SealStep(purpose, f.sessions.Browser(w, r), state)
}

// maxQueryBytes is the maximum size of an authorization request. It leaves room for a state of more
// than two kilobytes, which real clients send.
const maxQueryBytes = 6 << 10

// query reads the parameters of a URL. If it returns false, it has sent a response.
func (f *pageForms) query(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	if len(r.URL.RawQuery) > maxQueryBytes {
		f.errors.show(w, r, http.StatusRequestURITooLong,
			sentence.NewError(oauth.InvalidRequest, "The request is too long.", "request_long"))
		return nil, false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		f.errors.show(w, r, http.StatusBadRequest,
			sentence.NewError(oauth.InvalidRequest, "The request is not well-formed.", "request_malformed"))
		return nil, false
	}
	return form.Foreign(query), true
}

// token returns the session of the browser, zero if it has none.
func (f *pageForms) token(r *http.Request) storage.Hash {
	token, _ := f.sessions.Token(r)
	return token
}

// mint creates the session of a user who signs in with r, in its browser.
func (f *pageForms) mint(r *http.Request, userID string, methods ...string) session.Minted {
	m := f.sessions.Mint(userID)
	m.Session.Methods, m.Session.Agent = methods, session.Agent(r.UserAgent())
	m.Session.Address = network.Coarse(f.proxies.ClientAddr(r))
	return m
}

// networks returns the source networks of a request for the limits, smallest first.
func (f *pageForms) networks(r *http.Request) []string {
	return network.Blocks(f.proxies.ClientAddr(r))
}

// near reports whether an address is in the source network of a request.
func (f *pageForms) near(r *http.Request, address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && network.Blocks(a)[0] == f.networks(r)[0]
}

// destination returns the destination in a page's address; the default is the account page.
func (f *pageForms) destination(w http.ResponseWriter, r *http.Request) (to entry.Destination, ok bool) {
	sealed := r.URL.Query().Get("to")
	if sealed == "" {
		return entry.Destination{Page: pageAccount}, true
	}
	if err := f.unseal(w, r, purposeTo, sealed, &to); err != nil {
		f.errors.stale(w, r)
		return to, false
	}
	return to, true
}

// answer returns the authentication in a form, and its source.
func (f *pageForms) answer(w http.ResponseWriter, r *http.Request, posted url.Values) entry.Answer {
	from, device := f.networks(r), f.sessions.KnownBrowser(r)
	return entry.Answer{
		Code:       posted.Get("code"),
		Recovery:   posted.Get("recovery"),
		Credential: []byte(posted.Get("credential")),
		Browser:    f.sessions.Browser(w, r),
		Attempt: users.Attempt{
			Name:         posted.Get("username"),
			Password:     posted.Get("password"),
			Network:      from[0],
			Wider:        from[1:],
			KnownBrowser: users.KnownBrowser{Name: device.Name, ID: device.ID},
		},
	}
}
