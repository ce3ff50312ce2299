package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// finder finds the client with an id.
type finder func(ctx context.Context, id string) (storage.Client, error)

// errUnread is returned by a finder for a client whose metadata document would have to be fetched
// while nobody is signed in. Anonymous requests cannot make the server fetch a document (AS-154).
var errUnread = errors.New("flow: the client's document is not read for strangers")

// fetching wraps find to fetch the document of an unknown client if a user is signed in.
func (f *Flow) fetching(find finder, who visitor) finder {
	return func(ctx context.Context, id string) (storage.Client, error) {
		c, err := find(ctx, id)
		if !errors.Is(err, refusal.ErrUnknownClient) || !f.Clients.MayFetch(id) {
			return c, err
		}
		switch v, visitErr := who(ctx, storage.VisitKey{}); {
		case visitErr != nil:
			return c, visitErr
		case v == nil:
			return c, errUnread
		}
		return f.Clients.Fetch(ctx, id)
	}
}

// identify finds the client and the redirect URI of a request. Its errors are shown on a page and
// never redirected (OAuth 2.1 §4.1.2.1, AS-40). If a client's metadata document does not list the
// redirect URI, identify reads the document again before it refuses.
func (f *Flow) identify(ctx context.Context, p form.Params, find finder) (Identified, error) {
	for _, k := range []string{"client_id", "redirect_uri"} {
		if len(p.Values[k]) > 1 {
			return Identified{}, oauth.NewError(oauth.InvalidRequest, "The parameter '"+k+"' is repeated.")
		}
	}
	request.Of(ctx).Asked(p.Values)
	id := p.Get("client_id")
	if id == "" {
		return Identified{}, oauth.NewError(oauth.InvalidRequest, "The parameter 'client_id' is missing.")
	}
	request.Of(ctx).Note(slog.String("client_id", form.Cut(id, 512)), redirectAsked(p.Get("redirect_uri")))
	c, err := find(ctx, id)
	if err != nil {
		c.ID = id // the page shows the id that was sent
		return Identified{Client: c, Sent: p.Get("redirect_uri")}, err
	}
	if c.Source == storage.SourceCIMD && f.Clients.MayFetch(id) &&
		!oauth.MatchRedirectURI(c.RedirectURIs, p.Get("redirect_uri")) {
		if fresh, err := f.Clients.Fetch(ctx, id); err == nil {
			c = fresh
		}
	}
	request.Of(ctx).Note(audit.Client(c))
	to := Identified{Client: c, Sent: p.Get("redirect_uri"), State: p.Get("state")}
	switch {
	case to.Sent == "" && len(c.RedirectURIs) == 1: // OAuth 2.1 §2.3.2, AS-59
		to.RedirectURI = c.RedirectURIs[0]
	case to.Sent == "":
		return to, oauth.NewError(oauth.InvalidRequest, "The parameter 'redirect_uri' is missing.")
	case !oauth.MatchRedirectURI(c.RedirectURIs, to.Sent): // AS-52, AS-157, AS-224
		request.Of(ctx).Expect("redirect_uri", to.Sent, c.RedirectURIs)
		return to, errRedirect(c, to.Sent)
	default:
		to.RedirectURI = to.Sent
	}
	return to, nil
}

// errRedirect returns an error that names the sent and the registered redirect URIs, so that the
// user can compare them. The page shows it as text, never as a link. Redirect URIs that an operator
// registered are not shown to strangers.
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

// redirectAsked returns the redirect URI of a request for the audit log, without parts that may
// carry secrets.
func redirectAsked(raw string) slog.Attr {
	u, err := url.Parse(raw)
	if err != nil {
		return slog.String("redirect_uri", "(not a URI)")
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return slog.String("redirect_uri", u.String())
}
