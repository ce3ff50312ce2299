package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Verdict rates a finding.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "ok"
	Warning Verdict = "warning" // works, but could be better
	Problem Verdict = "problem" // does not work
)

// Finding is the result of one check.
type Finding struct {
	Verdict Verdict
	What    string // the observation
	Advice  string // the next step, "" for none
}

func good(format string, args ...any) Finding {
	return Finding{Verdict: Good, What: fmt.Sprintf(format, args...)}
}

func (u *plainOAuth) Examine(ctx context.Context, redirectURI string) ([]Finding, bool) {
	e, err := u.locate(ctx)
	if err != nil {
		return []Finding{u.unlocated(err)}, false
	}
	return u.examined(ctx, e, probe(ctx, u, redirectURI)), true
}

func (p *openID) Examine(ctx context.Context, redirectURI string) ([]Finding, bool) {
	e, err := p.locate(ctx)
	if err != nil {
		return []Finding{p.unlocated(err)}, false
	}
	out := append([]Finding{good("The metadata of %s are good.", e.issuer)},
		p.examined(ctx, e, probe(ctx, p, redirectURI))...)
	if !e.namesIssuer {
		out = append(out,
			good("It does not name itself in its answers (RFC 9207); the redirect URI of its own keeps answers of different providers apart."))
	}
	return out, true
}

// examined returns the findings that both protocols share.
func (u *plainOAuth) examined(ctx context.Context, e *endpoints, probed error) []Finding {
	return []Finding{u.clock(ctx, e), credentials(probed), e.proofKeys(), u.renewal(e)}
}

// probe asks the provider to redeem an invalid code. The result shows whether the provider is
// reachable, has the expected identity and accepts the client credentials.
func probe(ctx context.Context, p Provider, redirectURI string) error {
	_, _, err := p.Exchange(ctx, "mcp-authd-doctor", strings.Repeat("doctor", 8), "doctor", redirectURI)
	if errors.Is(err, ErrDenied) {
		return nil
	}
	return err
}

// unlocated returns the finding for unusable metadata.
func (u *plainOAuth) unlocated(err error) Finding {
	f := Finding{Verdict: Problem, What: err.Error()}
	switch {
	case errors.Is(err, ErrUnreachable):
		f.Advice = "Can this machine reach " + u.Issuer + "? Look at DNS, the firewall, and the certificate."
	case strings.Contains(err.Error(), "networks"):
		f.Advice = "The metadata name a host in a private network. If that is right, add the network to networks."
	default:
		f.Advice = "The issuer has to be spelled exactly as the provider's metadata do, at " + u.wellKnown() + "."
	}
	return f
}

func (s *Settings) wellKnown() string {
	return strings.TrimSuffix(s.Issuer, "/") + "/.well-known/openid-configuration"
}

// clock compares the clocks, based on the Date of a response (RFC 9110 §6.6.1).
func (u *plainOAuth) clock(ctx context.Context, e *endpoints) Finding {
	at := e.userInfo
	if u.preset.openID {
		at = u.wellKnown()
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
		return good("It does not say what time it is.")
	}
	switch skew := before.Sub(theirs).Abs().Round(time.Second); {
	case skew > Leeway:
		return Finding{
			Problem, fmt.Sprintf("The clocks differ by %v.", skew),
			"Set the clock of this machine by NTP: sign-ins fail, for tokens seem to be expired or from the future.",
		}
	case skew > Leeway/4:
		return Finding{
			Warning, fmt.Sprintf("The clocks differ by %v.", skew),
			"Set the clock of this machine by NTP, before it is more.",
		}
	}
	return good("The clocks agree.")
}

// credentials returns the finding for the result of a probe.
func credentials(err error) Finding {
	switch {
	case err == nil:
		return good("Client id and secret are accepted.")
	case errors.Is(err, ErrMisconfigured):
		return Finding{
			Problem, err.Error(),
			"Look at client_id, client_secret and client_auth, and whether the redirect URI is registered exactly as above.",
		}
	case errors.Is(err, ErrUnreachable):
		return Finding{
			Problem, err.Error(), "The token endpoint does not answer. Look at DNS, the firewall, and the certificate.",
		}
	}
	return Finding{Warning, "Client id and secret could not be checked: " + err.Error(), "Try to sign in."}
}

// proofKeys returns the finding about PKCE. PKCE is sent to every provider, and a provider without
// support ignores it.
func (e *endpoints) proofKeys() Finding {
	switch {
	case slices.Contains(e.challenges, "S256"):
		return good("It supports PKCE.")
	case len(e.challenges) > 0:
		return Finding{
			Warning, "It supports PKCE, but not with S256, which the server sends.",
			"Ask for an update of the provider.",
		}
	}
	return good("It does not say whether it supports PKCE; it is sent all the same, beside state and nonce.")
}

// renewal returns the finding about refresh tokens.
func (u *plainOAuth) renewal(e *endpoints) Finding {
	if u.preset.ID != "oidc" || u.offline(e) || u.Detached {
		return good("Refresh tokens: %s.", u.preset.Refresh)
	}
	return Finding{
		Warning, "It lists no scope offline_access, so it may give no refresh token: sign-ins then end with their first access token.",
		"If it gives refresh tokens by other means, all is well. Else set detached, or scopes and parameters as the provider's manual says.",
	}
}
