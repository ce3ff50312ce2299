package flow

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Next decides the next step of a request from what was found out about it. It is the only
// place that decides, and it is pure: each step, when done, comes back to it (AS-39, AS-70).
func Next(x Examined, now time.Time) Step {
	switch x := x.(type) {
	case Unidentified:
		return Fail(x)
	case Unread:
		return signInUnread(x)
	case Unclear:
		return Stop(x)
	case Invalid:
		return refuse(x.To, x.Visit, x.Err)
	case Forbidden:
		return refuse(x.Request.Identified, x.Visit, x.Err)
	case Valid:
		return nextValid(x, now)
	}
	panic("flow: an examination of an unknown type")
}

func nextValid(x Valid, now time.Time) Step {
	r, silent := x.Request, slices.Contains(x.Request.Prompt, "none") // OpenID Connect Core §3.1.2.1
	switch {
	case mustSignIn(r, x.Visit, now) && silent:
		return refuse(r.Identified, x.Visit, oauth.NewError(oauth.LoginRequired, "The person is not signed in."))
	case mustSignIn(r, x.Visit, now):
		return signIn(x)
	case mustChoose(r, x.Visit) && silent:
		return refuse(r.Identified, x.Visit, oauth.NewError(oauth.LoginRequired, "Another person is signed in."))
	case mustChoose(r, x.Visit), !silent && comesToAlias(r, x.Visit):
		return ChooseAccount{r}
	}
	return nextOfPerson(x, silent, now)
}

// nextOfPerson is nextValid once it is known who the person is.
func nextOfPerson(x Valid, silent bool, now time.Time) Step {
	r, v, granted := x.Request, x.Visit, x.Request.Scopes
	if r.Paused != nil {
		return whilePaused(r, *v, silent)
	}
	asks := mustConsent(r, v)
	if asks { // what the person will choose is not known, but for what they chose before
		granted = granted.Intersect(policy.Implied(r.Resource.Resource, v.Consented))
	}
	missing, err := x.lacking(granted, entry.Destination{Query: r.Query}, now)
	switch {
	case err != nil:
		return refuse(r.Identified, v, err)
	case missing != nil && silent:
		return refuse(r.Identified, v, oauth.NewError(oauth.LoginRequired, "The person has to prove more."))
	case missing != nil:
		return missing
	case x.Clearance.refused():
		return refuse(r.Identified, v, errDenied)
	case asks && silent:
		return refuse(r.Identified, v,
			oauth.NewError(oauth.ConsentRequired, "The person has not consented to this request."))
	case x.Clearance.waitsForPerson() && silent:
		return refuse(r.Identified, v,
			oauth.NewError(oauth.InteractionRequired, "The person has to decide about a call."))
	case x.Proof != nil:
		return x.Proof
	case asks:
		return AskConsent{Request: r, Visit: *v}
	}
	if step := askClearance(r, x.Clearance, v.Session.Hash, nil); step != nil {
		return step
	}
	if mustConfirm(x) && !silent {
		return ConfirmAccount{Request: r, Visit: *v}
	}
	return issue{r, Approver{
		Session: v.Session.Hash, UserID: v.User.ID, AuthTime: v.Session.AuthTime, Remembered: v.Consented,
		Code: r.Query.PushedCode(),
	}}
}

// signIn is the step in which a person signs in for a request: at the provider it leads to, or on
// the page on which people choose.
func signIn(x Valid) Step {
	r := x.Request
	if r.Provider != "" {
		return AskBeforeProvider{Request: r, EndNotice: x.EndNotice}
	}
	return SignInStep{entry.Login{
		To:        entry.Destination{Query: r.Query},
		Client:    r.Client,
		Resource:  r.Resource.Resource,
		EndNotice: x.EndNotice,
		LoginHint: form.Cut(r.LoginHint, maxHint),
	}}
}

// maxHint bounds the name that a client fills into the login page, in bytes.
const maxHint = 200

// signInUnread is signIn for a client of which only the id is known.
func signInUnread(x Unread) Step {
	if x.Provider != "" {
		return AskBeforeReading{x}
	}
	return SignInStep{entry.Login{
		To:        entry.Destination{Query: x.Query},
		Client:    x.Client,
		Resource:  x.Resource,
		EndNotice: x.EndNotice,
	}}
}

func mustSignIn(r Request, v *storage.Visit, now time.Time) bool {
	return v == nil || r.Another || slices.Contains(r.Prompt, "login") ||
		r.MaxAge >= 0 && (v.Session.AuthTime.IsZero() || now.Sub(v.Session.AuthTime) > r.MaxAge)
}

// mustChoose reports whether the person has to say as whom they answer: when the client demands it,
// and when it expects another person than the one who is signed in (OpenID Connect Core §3.1.2.1,
// AS-239). A code never goes to another account than the current one without a page. Of accounts at
// providers, a client knows another name than we do.
func mustChoose(r Request, v *storage.Visit) bool {
	expected := r.LoginHint == "" || v.Session.UpstreamID != "" || strings.EqualFold(r.LoginHint, v.User.Name)
	return slices.Contains(r.Prompt, "select_account") || !expected
}

// comesToAlias reports whether a person first lets this client in at an alias of an MCP server. Aliases
// are there to connect as another person, and the one who is signed in is often the one of the resource
// itself. A client that claims that the person has chosen leads to the consent page, which names them.
func comesToAlias(r Request, v *storage.Visit) bool {
	return r.Resource.AliasOf != "" && v.Consented == nil && !r.Chosen
}

// mustConsent looks at what the person has allowed this client; who has to sign in at a provider is
// asked before that, too (SP-02).
//
// For a client that wants to know who they are, people are not asked: the operator has decided that,
// and it has credentials, so no other program can pass for it.
func mustConsent(r Request, v *storage.Visit) bool {
	if r.SignIn {
		return slices.Contains(r.Prompt, "consent")
	}
	return anyProgramCouldAsk(r) ||
		asksAlways(r) ||
		slices.Contains(r.Prompt, "consent") ||
		policy.NeedsConsent(r.Resource.Resource, v.Consented, r.Scopes)
}

// anyProgramCouldAsk reports whether every program on the person's computer could make this very
// request and get the answer: the id of a metadata document is public, that of a client of the
// operator is in its users' manual, and any program can take a loopback port or a private-use
// scheme. Such a client is asked about each time (RFC 8252 §8.6, OAuth 2.1 §7.3.1). An id that was
// registered is known to one installation only.
func anyProgramCouldAsk(r Request) bool {
	published := r.Client.Source == storage.SourceCIMD || r.Client.Operated()
	return published && r.Client.Public() && onOneComputer(r.Identified)
}

// refuse sends an error to the client where that needs no question: to clients of the operator, and
// to a place that this person has allowed for the client as it is. Anyone can register a client
// with a redirect URI of their choice, and must not get an open redirector that way (OAuth 2.1
// §7.12.2).
func refuse(to Identified, v *storage.Visit, err error) Step {
	if to.Client.Operated() || v != nil && v.Known {
		return RespondError{to, err}
	}
	return Stop{to, err}
}
