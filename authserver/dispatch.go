package authserver

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// step is what comes next for an authorization request.
type step int

const (
	stepRefuse  step = iota // send an error to the client
	stepLogin               // show the login page
	stepDepart              // show the consent page of somebody who then signs in at a provider
	stepConsent             // show the consent page
	stepIssue               // issue a code
	stepLeave               // send the browser to a provider; only an approval leads here, never next
)

// next decides the next step of a valid request from what is known about the
// browser; v is nil when nobody is signed in. It is the only place that decides,
// and it is pure: each step, when done, comes back to it (AS-39, AS-70).
func next(a authorization, v *storage.Visit, now time.Time) (step, error) {
	silent := slices.Contains(a.prompt, "none") // OpenID Connect Core §3.1.2.1
	if mustLogin(a, v, now) {
		if silent {
			return stepRefuse, oauth.NewError(oauth.LoginRequired, "The person is not signed in.")
		}
		return signInStep(a), nil
	}
	if mustConsent(a, v) {
		if silent {
			return stepRefuse, oauth.NewError(oauth.ConsentRequired, "The person has not consented to this request.")
		}
		return stepConsent, nil
	}
	return stepIssue, nil
}

// signInStep is how somebody signs in for a request: at the provider it leads to, or on
// the page on which people choose.
func signInStep(a authorization) step {
	if a.provider != "" {
		return stepDepart
	}
	return stepLogin
}

func mustLogin(a authorization, v *storage.Visit, now time.Time) bool {
	return v == nil || slices.Contains(a.prompt, "login") ||
		a.maxAge >= 0 && (v.Session.AuthTime.IsZero() || now.Sub(v.Session.AuthTime) > a.maxAge)
}

func mustConsent(a authorization, v *storage.Visit) bool {
	return anybodyCouldAsk(a) || slices.Contains(a.prompt, "consent") || slices.Contains(a.prompt, "select_account") ||
		policy.NeedsConsent(a.resource.Resource, v.Consented, a.scopes)
}

// anybodyCouldAsk reports whether every program on the person's computer could make this
// very request and get the answer: the id of a metadata document is public, that of a client
// of the operator is in the manual of everybody who is to use it, and a loopback port or a
// private-use scheme is there for the taking. Such a client is asked about each time (RFC
// 8252 §8.6, OAuth 2.1 §7.3.1). An id that was registered is known to one installation only.
func anybodyCouldAsk(a authorization) bool {
	published := a.client.Source == storage.SourceCIMD || a.client.Operated()
	return published && a.client.Public() && !strings.HasPrefix(a.redirectURI, "https://")
}

// mayRedirectErrors reports whether an error may be sent to the client without
// asking the person: to clients of the operator, and to a place that this person has
// allowed for the client as it is. Anybody can register a client with a redirect URI of their
// choice, and must not get an open redirector that way (OAuth 2.1 §7.12.2).
func mayRedirectErrors(c storage.Client, v *storage.Visit) bool {
	return c.Operated() || v != nil && v.Known
}

// resumed is the request to come back to after a login: what demanded the login is
// fulfilled by it.
func resumed(a authorization) string {
	v := a.values()
	v.Del("max_age")
	v.Del(paramProvider)
	left := slices.DeleteFunc(slices.Clone(a.prompt), func(p string) bool { return p == "login" || p == "select_account" })
	if v.Del("prompt"); len(left) > 0 {
		v.Set("prompt", strings.Join(left, " "))
	}
	return v.Encode()
}
