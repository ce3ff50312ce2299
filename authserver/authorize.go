package authserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/authserver/internal/shell"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// maxQueryBytes bounds an authorization request. It leaves room for a state of two
// kilobytes and more, which real clients send.
const maxQueryBytes = 6 << 10

// identified is an authorization request of which we know who asks and where the
// answer goes. Only with it may the browser be sent to a client.
type identified struct {
	client storage.Client
	// redirectURI is where the answer goes; sent is what the request said, "" when
	// it named none and the client has just one.
	redirectURI, sent string
	state             string
}

// authorization is a valid authorization request.
type authorization struct {
	identified
	resource  policy.Resolution
	scopes    oauth.Scopes
	challenge string
	prompt    []string
	maxAge    time.Duration // negative: not asked for
	query     string        // the request itself, to come back to
	provider  string        // where to sign in, "" for the page on which people choose
}

// finder resolves a client id.
type finder func(ctx context.Context, id string) (storage.Client, error)

// identify finds out who asks and where the answer goes. Its failures are shown to
// the person on a page and never redirected (OAuth 2.1 §4.1.2.1, AS-40).
//
// find resolves the client: findClient, or fetchClient once somebody has signed in, so
// that a stranger's word makes us fetch nothing (AS-154). A redirect URI that a metadata
// document does not have may be new in it, so it is read again before we refuse.
func (s *Server) identify(ctx context.Context, p form.Params, find finder) (identified, error) {
	for _, k := range []string{"client_id", "redirect_uri"} {
		if len(p.Values[k]) > 1 {
			return identified{}, oauth.NewError(oauth.InvalidRequest, "The parameter '"+k+"' is repeated.")
		}
	}
	id := p.Get("client_id")
	if id == "" {
		return identified{}, oauth.NewError(oauth.InvalidRequest, "The parameter 'client_id' is missing.")
	}
	audit.Note(ctx, slog.String("client_id", form.Cut(id, 512)), redirectAsked(p.Get("redirect_uri")))
	c, err := find(ctx, id)
	if err != nil {
		c.ID = id // whatever else may still be known of it, for the page
		return identified{client: c, sent: p.Get("redirect_uri")}, err
	}
	if c.Source == storage.SourceCIMD && s.clients.MayFetch(id) && !oauth.MatchRedirectURI(c.RedirectURIs, p.Get("redirect_uri")) {
		if fresh, err := s.clients.Fetch(ctx, id); err == nil {
			c = fresh
		}
	}
	audit.Note(ctx, audit.Client(c))
	who := identified{client: c, sent: p.Get("redirect_uri"), state: p.Get("state")}
	switch {
	case who.sent == "" && len(c.RedirectURIs) == 1: // OAuth 2.1 §2.3.2, AS-59
		who.redirectURI = c.RedirectURIs[0]
	case who.sent == "":
		return who, oauth.NewError(oauth.InvalidRequest, "The parameter 'redirect_uri' is missing.")
	case !oauth.MatchRedirectURI(c.RedirectURIs, who.sent):
		return who, errRedirect(c, who.sent)
	default:
		who.redirectURI = who.sent
	}
	return who, nil
}

// errRedirect names both sides, since whoever sees it has to compare them. It is shown
// as text, never as a link. What an operator has registered is not for strangers.
func errRedirect(c storage.Client, sent string) error {
	refused := func(text string) error {
		return oauth.NewError(oauth.InvalidRequest, text).Because(refusal.ErrNotRegistered)
	}
	what := fmt.Sprintf("The redirect URI %+q is not registered for this client", form.Cut(sent, 200))
	if c.Operated() || len(c.RedirectURIs) == 0 {
		return refused(what + ".")
	}
	var have []string
	for _, u := range c.RedirectURIs[:min(len(c.RedirectURIs), 4)] {
		have = append(have, fmt.Sprintf("%+q", form.Cut(u, 200)))
	}
	return refused(what + ", which has " + strings.Join(have, ", ") + ".")
}

// redirectAsked is the redirect URI of a request, without what it may carry.
func redirectAsked(raw string) slog.Attr {
	u, err := url.Parse(raw)
	if err != nil {
		return slog.String("redirect_uri", "(not a URI)")
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return slog.String("redirect_uri", u.String())
}

// validate checks the rest of the request. Its failures go to the redirect URI.
func (s *Server) validate(ctx context.Context, who identified, p form.Params) (authorization, error) {
	a := authorization{identified: who, maxAge: -1, challenge: p.Get("code_challenge"), query: p.Values.Encode()}
	if err := checkAuthorizeParams(p); err != nil {
		return a, err
	}
	if !slices.Contains(who.client.GrantTypes, oauth.GrantCode) {
		return a, oauth.NewError(oauth.UnauthorizedClient, "The client is not registered for the authorization code grant.")
	}
	catalog, err := s.catalog.Load(ctx)
	if err != nil {
		return a, refusal.Unavailable(err)
	}
	audit.Note(ctx, slog.String("resource", strings.Join(p.Resources(), " "))) // as it was asked for
	if a.resource, err = catalog.Resolve(p.Resources()); err != nil {
		audit.Note(ctx, slog.String("resource", form.Cut(strings.Join(p.Resources(), " "), 512)))
		return a, err
	}
	requested := oauth.ParseScopes(p.Get("scope"))
	a.scopes = policy.Requestable(a.resource.Resource, requested)
	if unknown := policy.Unknown(a.resource.Resource, requested); len(unknown) > 0 { // a client that is told to ask for it comes back again and again
		audit.Note(ctx, slog.String("scope_unknown", form.Cut(unknown.String(), 512)))
	}
	audit.Note(ctx, slog.String("resource", a.resource.URI), slog.String("resource_match", a.resource.Match), slog.String("scope", a.scopes.String()))
	a.prompt = strings.Fields(p.Get("prompt"))
	a.provider = s.pickProvider(p)
	if age, err := strconv.Atoi(p.Get("max_age")); err == nil && age >= 0 {
		a.maxAge = time.Duration(min(age, 1<<30)) * time.Second
	}
	return a, s.grants.shell.Validate(ctx, shellRequest(a, p))
}

// checkAuthorizeParams holds the rules that need nothing but the parameters.
func checkAuthorizeParams(p form.Params) error {
	if err := p.CheckRepeated(); err != nil {
		return err
	}
	switch {
	case p.Get("request") != "" || p.Get("request_uri") != "":
		return oauth.NewError(oauth.InvalidRequest, "Request objects are not supported.")
	case p.Get("response_type") == "": // OAuth 2.1 §4.1.1, AS-38
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'response_type' is missing.")
	case p.Get("response_type") != "code":
		return oauth.NewError(oauth.UnsupportedResponseType, "Only the response type 'code' is supported.")
	case p.Get("code_challenge") == "": // OAuth 2.1 §4.1.1, §7.5.2, AS-61
		return oauth.NewError(oauth.InvalidRequest, "PKCE is required: the parameter 'code_challenge' is missing.")
	case p.Get("code_challenge_method") != oauth.S256: // an omitted method means plain
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'code_challenge_method' must be S256.")
	case !oauth.ValidChallenge(p.Get("code_challenge")):
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'code_challenge' is not an S256 challenge.")
	}
	return nil
}

// shellRequest is what the shell sees of a request.
func shellRequest(a authorization, p form.Params) shell.AuthorizeRequest {
	return shell.AuthorizeRequest{
		ResponseType: p.Get("response_type"),
		ResponseMode: p.Get("response_mode"),
		Client:       a.client,
		RedirectURI:  a.redirectURI,
		Scopes:       a.scopes,
		State:        a.state,
	}
}

// issueCode turns an approval into the parameters of the authorization response.
func (s *Server) issueCode(ctx context.Context, ap *approval) (url.Values, error) {
	return s.grants.shell.Authorize(ctx, shellRequest(ap.authorization, form.New(ap.values())), func(ctx context.Context) (string, error) {
		code, err := s.grants.approvals.Approve(ctx, grant.Approval{
			Session:     ap.session,
			UserID:      ap.userID,
			AuthTime:    ap.authTime,
			Remembered:  ap.remembered,
			Client:      ap.client,
			RedirectURI: ap.redirectURI,
			Sent:        ap.sent,
			Challenge:   ap.challenge,
			Resource:    ap.resource.URI,
			Scopes:      ap.scopes,
		})
		if errors.Is(err, grant.ErrSignedOut) {
			err = storage.ErrNotFound
		}
		return code, err
	})
}

func (a authorization) values() url.Values {
	v, _ := url.ParseQuery(a.query) // it is our own encoding
	return v
}

// redirectTarget is the redirect URI with the response parameters added to its own
// query (OAuth 2.1 §2.3, AS-44), and always with iss (RFC 9207 §2, AS-68, AS-69) and with state exactly
// when there was one.
func (s *Server) redirectTarget(who identified, response url.Values) string {
	response.Set("iss", s.cfg.Issuer)
	response.Del("state")
	if who.state != "" {
		response.Set("state", who.state)
	}
	sep := "?"
	switch i := strings.IndexByte(who.redirectURI, '?'); {
	case i == len(who.redirectURI)-1:
		sep = ""
	case i >= 0:
		sep = "&"
	}
	return who.redirectURI + sep + response.Encode()
}

// errorResponse is the error response at the redirect URI (OAuth 2.1 §4.1.2.1, AS-41).
func errorResponse(err error) url.Values {
	e := oauth.AsError(err)
	return url.Values{"error": {string(e.Code)}, "error_description": {oauth.SafeDescription(e.Description)}}
}
