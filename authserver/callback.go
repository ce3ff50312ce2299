package authserver

import (
	"log/slog"
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// responseParams lists the supported parameters of an authorization response (RFC 6749 §4.1.2,
// RFC 9207 §2).
var responseParams = []string{"state", "code", "iss", "error", "error_description"}

// callback serves /callback/{provider}, the redirect URI for providers.
func (p *providerPages) callback(w http.ResponseWriter, r *http.Request) {
	provider, ok := p.flow.Options.Provider(r.PathValue("provider"))
	request.Of(r.Context()).Note(slog.String("connector", form.Cut(r.PathValue("provider"), 100)))
	switch {
	case !ok:
		p.forms.errors.show(w, r, http.StatusNotFound,
			sentence.NewError(oauth.InvalidRequest, "There is no such way to sign in here.", "no_way"))
	case r.Method == http.MethodPost:
		p.turnIntoGet(w, r, provider)
	default:
		p.response(w, r, provider)
	}
}

// turnIntoGet redirects an authorization response that the provider posts
// (response_mode=form_post). Browsers do not send this server's cookies with a post from another
// site, but with the GET that follows.
func (p *providerPages) turnIntoGet(w http.ResponseWriter, r *http.Request, provider delegation.Provider) {
	posted, ok := p.forms.read(w, r)
	if !ok {
		return
	}
	query := responseOnly(posted).Encode()
	if len(query) > maxQueryBytes {
		p.forms.errors.show(w, r, http.StatusRequestEntityTooLarge,
			sentence.NewError(oauth.InvalidRequest, "The request is too long.", "request_long"))
		return
	}
	redirect(w, p.steps.views.paths.callback+provider.ID+"?"+query)
}

// responseOnly drops parameters that do not belong to an authorization response, and a repeated
// state. The delegation refuses other repeated parameters (RFC 6749 §3.1): an error next to a code
// must not be lost.
func responseOnly(values url.Values) url.Values {
	out := url.Values{}
	for _, k := range responseParams {
		if v := values[k]; len(v) == 1 || len(v) > 1 && k != "state" {
			out[k] = v
		}
	}
	return out
}

func (p *providerPages) response(w http.ResponseWriter, r *http.Request, provider delegation.Provider) {
	values, ok := p.forms.query(w, r)
	if !ok {
		return
	}
	params, sessions := responseOnly(values), p.forms.sessions
	if !values.Has("state") {
		p.forms.errors.unasked(w, r, provider.Name)
		return
	}
	begun, ok := sessions.SignIn(r, params.Get("state"))
	if !ok {
		// A caller that has only the state, from a log or a link, changes nothing (AS-220).
		p.forms.errors.lost(w, r)
		return
	}
	fresh := p.forms.mint(r, "", ways.ByProvider) // always new: see entry.Mint
	out := p.signIns.Return(r.Context(), flow.Response{
		AuthorizationResponse: delegation.AuthorizationResponse{
			Provider: provider.ID, Params: params, Binding: begun.Binding, Session: fresh.Session,
		},
		UserID: begun.UserID,
		Token:  p.forms.token(r),
	})
	if out.Over {
		sessions.EndSignIn(w, params.Get("state"))
	}
	if out.SignedIn {
		if err := p.forms.hold(w, r, p.flow.Browsers, fresh, out.User); err != nil {
			p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
			return
		}
	}
	p.steps.write(w, r, out.Next)
}
