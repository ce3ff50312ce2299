package flow

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Next chooses the next step of a request from the result of its examination. It is the only place
// that chooses, and it is pure: each step returns to it when it is done (AS-39, AS-70).
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

// nextOfPerson continues nextValid for a known user.
func nextOfPerson(x Valid, silent bool, now time.Time) Step {
	r, v, granted := x.Request, x.Visit, x.Request.Scopes
	if r.Paused != nil {
		return whilePaused(r, *v, silent)
	}
	asks := mustConsent(r, v)
	if asks { // only the earlier choice is known before the page
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

// signIn returns the step where a user signs in for a request: at the chosen provider, or on the
// page with the choice.
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

// maxHint is the maximum length of a login hint on the login page, in bytes.
const maxHint = 200

// signInUnread is signIn for a client whose metadata document has not been read.
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

// mustChoose reports whether the user has to choose an account: if the client requires it, or if it
// expects another user (OpenID Connect Core §3.1.2.1, AS-239). A code never goes to another account
// than the current one without a page. A login hint says nothing about accounts that signed in at a
// provider, because the client knows them by another name.
func mustChoose(r Request, v *storage.Visit) bool {
	expected := r.LoginHint == "" || v.Session.UpstreamID != "" || strings.EqualFold(r.LoginHint, v.User.Name)
	return slices.Contains(r.Prompt, "select_account") || !expected
}

// comesToAlias reports whether the user approves this client for the first time at an alias of an
// MCP server. Aliases exist to connect as another user, and the signed-in user is often the main
// resource's user. If a client falsely claims that the user has chosen, the consent page still
// names the account.
func comesToAlias(r Request, v *storage.Visit) bool {
	return r.Resource.AliasOf != "" && v.Consented == nil && !r.Chosen
}

// mustConsent reports whether the user has to consent, given their earlier consent. Before a
// sign-in at a provider, the user consents first (SP-02). For a client that only identifies users,
// the operator has consented. Such a client has credentials, so no other program can impersonate
// it.
func mustConsent(r Request, v *storage.Visit) bool {
	if r.SignIn {
		return slices.Contains(r.Prompt, "consent")
	}
	return anyProgramCouldAsk(r) ||
		asksAlways(r) ||
		slices.Contains(r.Prompt, "consent") ||
		policy.NeedsConsent(r.Resource.Resource, v.Consented, r.Scopes)
}

// anyProgramCouldAsk reports whether every program on the user's computer could make this request
// and receive the response. A metadata document's id is public, and an operator's client id is in
// its manual. Any program can take a loopback port or a private-use scheme. Users are asked about
// such clients each time (RFC 8252 §8.6, OAuth 2.1 §7.3.1). A dynamically registered id is known to
// one installation only.
func anyProgramCouldAsk(r Request) bool {
	published := r.Client.Source == storage.SourceCIMD || r.Client.Operated()
	return published && r.Client.Public() && onOneComputer(r.Identified)
}

// refuse sends an error to the client if that needs no question: to clients of the operator, and to
// a redirect URI that this user approved for the unchanged client. Anyone can register a client
// with any redirect URI, which would make this server an open redirector (OAuth 2.1 §7.12.2).
func refuse(to Identified, v *storage.Visit, err error) Step {
	if to.Client.Operated() || v != nil && v.Known {
		return RespondError{to, err}
	}
	return Stop{to, err}
}
