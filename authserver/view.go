package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// views converts records into the content of pages.
type views struct {
	issuer  string
	paths   paths
	flow    *flow.Flow
	clients *clients.Finder
	mail    bool // mail can be sent to users
	codeTTL time.Duration
	// noOtherDevice disables signing in a browser from another device.
	noOtherDevice bool
}

func (v *views) login(step entry.Login) pages.Login {
	out := pages.Login{Action: v.paths.login, EndNotice: pages.Told(step.EndNotice)}
	if v.mail {
		out.ForgottenURL = v.paths.forgotten
	}
	if step.To.Query != "" {
		out.Client, out.Resource = clientParty(step.Client), resourceParty(step.Resource)
	}
	return out
}

// request returns the content about an application's request.
func (v *views) request(a flow.Request, q policy.Question, nothingChosen bool) pages.Request {
	return pages.Request{
		Client: clientParty(a.Client), SelfRegistered: !v.clients.Vouched(a.Client),
		// AS-71: the host is always shown
		RedirectHost: redirectHost(a.RedirectURI), RedirectIsLoopback: oauth.IsLoopbackRedirect(a.RedirectURI),
		RedirectURI: a.RedirectURI,
		Resource:    resourceParty(a.Resource.Resource), Permissions: permissions(q), NothingChosen: nothingChosen,
		StaySignedIn: a.Scopes.Has(oauth.OfflineAccess) || slices.Contains(a.Client.GrantTypes, oauth.GrantRefresh),
	}
}

// failed returns the page about a failed sign-in at a provider, with err as the reason.
func (v *views) failed(r *http.Request, step flow.ProviderFailed, err error) pages.Failed {
	e := oauth.AsError(err)
	out := pages.Failed{
		Message: pages.Told(sentence.Of(e)), Code: string(e.Code), RequestID: request.Of(r.Context()).Reference(),
		Provider: providerView(step.Provider), RetryURL: v.paths.home,
		Fault: faultOf(e), Came: step.Came, Expected: step.Expected,
	}
	switch to := step.To; {
	case to.Query != "" &&
		slices.Contains([]oauth.Code{oauth.AccessDenied, oauth.UnmetAuthentication, oauth.LoginRequired}, e.Code):
		// the same account, or the same provider, would be refused again
		out.RetryURL = v.paths.request(to.Query.AsAnotherPerson())
	case to.Query != "":
		out.RetryURL = v.paths.atProvider(to.Query, step.Provider.ID)
	case to.Connect != "":
		out.RetryURL = v.paths.connect + to.Connect
	case to.Device != "":
		out.RetryURL = v.paths.forDevice(to.Device)
	}
	return out
}

// faultOf distinguishes errors of the provider, and of its registration here, from errors of the
// user. Users should not retry if that cannot help.
func faultOf(e *oauth.Error) pages.Fault {
	switch e.Code {
	case oauth.TemporarilyUnavailable:
		return pages.FaultProvider
	case oauth.ServerError:
		return pages.FaultSetup
	}
	return pages.FaultPerson
}

// clientParty returns the content about a client. Only the host of its metadata document is
// verified; everything else is the client's claim.
func clientParty(c storage.Client) pages.Party {
	return pages.Party{Name: c.Name, URL: c.ID, Host: flow.DocumentHost(c)}
}

func resourceParty(r storage.Resource) pages.Party {
	p := pages.Party{Name: r.Name, URL: r.URI}
	if u, err := url.Parse(r.URI); err == nil {
		p.Host = u.Host
	}
	return p
}

// permissions returns the scopes of a question for a page: those that are allowed already, and
// those to decide about.
func permissions(q policy.Question) (out pages.Permissions) {
	open, preselected := q.Open(), q.Preselected()
	read, some := q.ReadOnly()
	dangerous := policy.Dangerous(q.Resource, q.Asked)
	out.Choice, out.ReadOnly = q.Optional(), some
	risky := len(policy.Dangerous(q.Resource, open))
	out.Risky, out.OnlyRisky = risky > 0, risky == len(open)
	for _, t := range q.Resource.Scopes {
		s := pages.Scope{
			Name:        t.Name,
			Description: t.Description,
			Fixed:       !open.Has(t.Name),
			Checked:     preselected.Has(t.Name),
			Dangerous:   dangerous.Has(t.Name),
			Read:        read.Has(t.Name),
			Identity:    t.Name == oauth.OpenID && t.Description == "",
		}
		switch {
		case q.Allowed.Has(t.Name):
			out.Allowed = append(out.Allowed, s)
		case q.Asked.Has(t.Name):
			out.Scopes = append(out.Scopes, s)
		}
	}
	return out
}

func redirectHost(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "http" || u.Scheme == "https":
		return u.Host
	}
	return u.Scheme + ":"
}

func isCustomScheme(target string) bool {
	return !strings.HasPrefix(target, "http://") && !strings.HasPrefix(target, "https://")
}

func providerView(p delegation.Provider) pages.Provider {
	return pages.Provider{Name: p.Name, Icon: p.Icon, Host: p.Host}
}
