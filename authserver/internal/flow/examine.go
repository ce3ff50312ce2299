package flow

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Examine identifies a request, validates it, and narrows it to the scopes that the user may have.
// find finds its client, and who finds the user. Every answer of a user is examined with the client
// that is stored at that time.
func (f *Flow) Examine(ctx context.Context, p form.Params, find finder, who visitor) Examined {
	to, err := f.identify(ctx, p, find)
	switch {
	case errors.Is(err, errUnread):
		return f.unread(ctx, to, p)
	case err != nil:
		return Unidentified{to.Client, to.Sent, err}
	}
	r, err := f.validate(ctx, to, p)
	v, visitErr := who(ctx, consentKey(to, r.Resource.URI))
	switch {
	case visitErr != nil:
		return Unclear{to, visitErr}
	case err != nil:
		return Invalid{to, v, err}
	case v == nil:
		return Valid{Request: r}
	}
	return f.permit(ctx, r, v)
}

// permit narrows a request to the scopes that policy allows the user. If the user's session at the
// provider has ended, they count as signed out.
func (f *Flow) permit(ctx context.Context, r Request, v *storage.Visit) Examined {
	scopes, err := f.permitted(ctx, r, v)
	switch {
	case errors.Is(err, storage.ErrRevoked):
		return Valid{Request: r}
	case err != nil:
		return Forbidden{r, v, err}
	}
	r.Scopes, r.ACRs = scopes, f.ACRs
	owes, err := f.owes(ctx, v)
	if err != nil {
		return Unclear{r.Identified, refusal.Unavailable(err)}
	}
	if r.Paused, err = f.paused(ctx, r, v); err != nil {
		return Unclear{r.Identified, err}
	}
	x := Valid{Request: r, Visit: v, Owes: owes}
	if x.Clearance, err = f.need(ctx, r, v); err != nil {
		return Unclear{r.Identified, err}
	}
	x.Proof = f.proof(x)
	return x
}

// permitted returns the scopes that policy allows the user. Every user may identify themselves to a
// client. The administration of this server requires a role (OB-10).
func (f *Flow) permitted(ctx context.Context, r Request, v *storage.Visit) (oauth.Scopes, error) {
	if r.SignIn {
		return r.Scopes, f.Bindings.Check(ctx, v.Session.UpstreamID, 0)
	}
	if r.Resource.Own {
		if err := f.administers(ctx, v); err != nil {
			return nil, err
		}
	}
	who := binding.Person{UserID: v.User.ID, UpstreamID: v.Session.UpstreamID}
	return f.Bindings.Permit(ctx, who, r.Resource.Resource, r.Scopes)
}

// administers returns nil for a user with a role. If the user answers a form, it reads the session
// first; see answering.
func (f *Flow) administers(ctx context.Context, v *storage.Visit) error {
	if v.User.ID == "" {
		live, err := f.Browsers.LiveVisit(ctx, v.Session.Hash, storage.VisitKey{})
		if err != nil {
			return refusal.Protocol(err)
		}
		if live == nil {
			return storage.ErrRevoked
		}
		v = live
	}
	if v.User.Role == "" {
		return binding.NoScopes
	}
	return nil
}

// owes reports whether a second factor is required of a user and missing in their session. Users
// who answer a form were asked for it before.
func (f *Flow) owes(ctx context.Context, v *storage.Visit) (bool, error) {
	if f.Factors == nil || v.User.ID == "" {
		return false, nil
	}
	need, err := f.Factors.Owes(ctx, v.User, v.Session.Methods)
	return need.Missing, err
}

// unread returns the request of a client whose metadata document has not been read.
func (f *Flow) unread(ctx context.Context, to Identified, p form.Params) Unread {
	x := Unread{
		Client:   storage.Client{ID: to.Client.ID, Source: storage.SourceCIMD},
		Query:    form.Query(p.Values.Encode()),
		Provider: f.Options.pickFor(p),
	}
	if catalog, err := f.Catalog.Load(ctx); err == nil {
		resource, _ := catalog.Resolve(p.Resources())
		x.Resource = resource.Resource
	}
	return x
}

// consentKey identifies the consent that could answer a request without a question: for the client
// in its current form, and for the redirect URI. Consents stored before redirect URIs were recorded
// count only for clients of the operator.
func consentKey(to Identified, resource string) storage.VisitKey {
	return storage.VisitKey{
		ClientID: to.Client.ID,
		Resource: resource,
		Place:    oauth.RedirectPlace(to.RedirectURI),
		Material: to.Client.Material(),
		Unplaced: to.Client.Operated(),
	}
}
