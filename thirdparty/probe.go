package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// ProbeResult is how one connector does, for the operator.
type ProbeResult struct {
	Connector, Name, Type string
	// RedirectURI has to be registered at the provider, exactly so. LogoutURI is for
	// providers with back-channel logout, "" for others.
	RedirectURI, LogoutURI string
	Findings               []Finding
}

// Verdict is how a finding is to be taken.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "ok"
	Warning Verdict = "warning" // works, but not as well as it could
	Problem Verdict = "problem" // does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Verdict Verdict
	What    string // what was found
	Advice  string // what to do about it, "" for nothing
}

// Healthy reports whether there is no problem.
func (r ProbeResult) Healthy() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict == Problem })
}

// Probe looks at every provider from here, for the doctor command: whether it can be
// reached, is who it should be, takes our credentials, and what it offers. It signs nobody
// in and changes nothing.
func (d *Delegation) Probe(ctx context.Context) []ProbeResult {
	out := make([]ProbeResult, len(d.connectors))
	var group sync.WaitGroup
	for i, c := range d.connectors {
		group.Go(func() { out[i] = c.examine(ctx) })
	}
	group.Wait()
	return out
}

func (c *connector) examine(ctx context.Context) ProbeResult {
	r := ProbeResult{Connector: c.ID, Name: c.Name, Type: c.Type, RedirectURI: c.redirectURI()}
	if c.preset.openID {
		r.LogoutURI = c.redirectURI() + "/logout"
	}
	u := c.base
	e, err := u.locate(ctx)
	if err != nil {
		r.add(c.unlocated(err))
		return r
	}
	if c.preset.openID {
		r.good("The metadata of %s are good.", e.issuer)
	}
	r.add(u.clock(ctx, e))
	r.add(c.credentials(ctx))
	r.add(e.proofKeys())
	r.add(u.renewal(e))
	if c.preset.openID && !e.namesIssuer {
		r.good("It does not name itself in its answers (RFC 9207); the redirect URI of its own keeps answers of different providers apart.")
	}
	if ruled := c.ruled(); len(ruled) > 0 && c.preset.openID && !c.Detached {
		r.good("Rules look at %s: what user info does not tell of these is checked by a refresh, whose ID token has to repeat it.", strings.Join(ruled, ", "))
	}
	for _, w := range c.Warnings() {
		r.add(Finding{Warning, w, "A scope that was not granted, or a mapper that was taken away, lets them all in."})
	}
	if c.Detached {
		r.good("Sign-ins do not end with the session at %s (detached).", c.Name)
	} else {
		r.good("That a session has ended is learned within %v: %s.", c.CheckEvery, c.preset.Checks)
	}
	return r
}

func (r *ProbeResult) add(f Finding) { r.Findings = append(r.Findings, f) }

func (r *ProbeResult) good(format string, args ...any) {
	r.add(Finding{Verdict: Good, What: fmt.Sprintf(format, args...)})
}

// unlocated says why the metadata of a provider cannot be used.
func (c *connector) unlocated(err error) Finding {
	f := Finding{Verdict: Problem, What: err.Error()}
	switch {
	case errors.Is(err, errUnreachable):
		f.Advice = "Can this machine reach " + c.Issuer + "? Look at DNS, the firewall, and the certificate."
	case strings.Contains(err.Error(), "networks"):
		f.Advice = "The metadata name a host in a private network. If that is right, add the network to networks."
	default:
		f.Advice = "The issuer has to be spelled exactly as the provider's metadata do, at " + strings.TrimSuffix(c.Issuer, "/") + "/.well-known/openid-configuration."
	}
	return f
}

// clock compares the clocks by the Date of an answer (RFC 9110 §6.6.1).
func (u *upstream) clock(ctx context.Context, e *endpoints) Finding {
	at := e.userInfo
	if u.preset.openID {
		at = strings.TrimSuffix(u.Issuer, "/") + "/.well-known/openid-configuration"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return Finding{Problem, err.Error(), ""}
	}
	before := u.now()
	resp, err := u.client.Do(req)
	if err != nil {
		return Finding{Problem, failed(err).Error(), "Can this machine reach it?"}
	}
	defer resp.Body.Close()
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return Finding{Verdict: Good, What: "It does not say what time it is."}
	}
	switch skew := before.Sub(theirs).Abs().Round(time.Second); {
	case skew > leeway:
		return Finding{Problem, fmt.Sprintf("The clocks differ by %v.", skew), "Set the clock of this machine by NTP: sign-ins fail, for tokens seem to be expired or from the future."}
	case skew > leeway/4:
		return Finding{Warning, fmt.Sprintf("The clocks differ by %v.", skew), "Set the clock of this machine by NTP, before it is more."}
	}
	return Finding{Verdict: Good, What: "The clocks agree."}
}

func (c *connector) credentials(ctx context.Context) Finding {
	err := c.probe(ctx)
	switch {
	case err == nil:
		return Finding{Verdict: Good, What: "Client id and secret are accepted."}
	case errors.Is(err, errMisconfigured):
		return Finding{Problem, err.Error(), "Look at client_id, client_secret and client_auth, and whether the redirect URI is registered exactly as above."}
	case errors.Is(err, errUnreachable):
		return Finding{Problem, err.Error(), "The token endpoint does not answer. Look at DNS, the firewall, and the certificate."}
	}
	return Finding{Warning, "Whether client id and secret are good cannot be told: " + err.Error(), "Try to sign in."}
}

// proofKeys: PKCE is sent to every provider; one that does not know it ignores it.
func (e *endpoints) proofKeys() Finding {
	switch {
	case slices.Contains(e.challenges, "S256"):
		return Finding{Verdict: Good, What: "It supports PKCE."}
	case len(e.challenges) > 0:
		return Finding{Warning, "It supports PKCE, but not with S256, which is what it is sent.", "Ask for an update of the provider."}
	}
	return Finding{Verdict: Good, What: "It does not say whether it supports PKCE; it is sent all the same, beside state and nonce."}
}

// renewal says whether tokens can be renewed.
func (u *upstream) renewal(e *endpoints) Finding {
	if u.preset.ID != "oidc" || u.offline(e) || u.Detached {
		return Finding{Verdict: Good, What: "Refresh tokens: " + u.preset.Refresh + "."}
	}
	return Finding{
		Warning, "It lists no scope offline_access, so it may give no refresh token: sign-ins then end with their first access token.",
		"If it gives refresh tokens by other means, all is well. Else set detached, or scopes and parameters as the provider's manual says.",
	}
}
