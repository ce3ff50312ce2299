package ways

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ACR returns the authentication context class of a session, or "" (RFC 9470 §4, AS-238). A
// provider counts as one factor, because its own factors are unknown. So does a code or link that
// replaces a lost factor. A passkey on another device is not phishing-resistant, because a
// malicious page may have caused its use.
func ACR(methods []string) string {
	shown := func(m string) bool { return slices.Contains(methods, m) }
	switch {
	case shown(ByPasskey) && !shown(ByOtherDevice):
		return oauth.ACRPhishingResistant
	case shown(ByPasskey), (shown(ByPassword) || shown(ByProvider)) && shown(ByApp):
		return oauth.ACRMultiFactor
	}
	return ""
}

// ACRs returns the classes that users can reach, weakest first. The strongest one requires a
// passkey.
func (w *Ways) ACRs() []string {
	if w.cfg.Site.Offered() {
		return oauth.ACRs()
	}
	return []string{oauth.ACRMultiFactor}
}

// AMR returns the methods in the form for tokens, with names from RFC 8176 §2 where they exist. A
// passkey with user verification has two names, one for each factor.
func AMR(methods []string) (out []string) {
	for _, m := range methods {
		if m == ByPasskey {
			out = append(out, "pop", "user")
			continue
		}
		out = append(out, m)
	}
	if oauth.ACRSatisfies(ACR(methods), oauth.ACRMultiFactor) {
		out = append(out, "mfa")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Reach returns the additional proof that a session needs for an authentication context class. A
// user who has no suitable method may enroll one.
func (w *Ways) Reach(ctx context.Context, u storage.User, methods []string, acr string) (Need, error) {
	if oauth.ACRSatisfies(ACR(methods), acr) {
		return Need{}, nil
	}
	f, err := w.Factors(ctx, u.ID)
	if err != nil {
		return Need{}, err
	}
	need := Need{Missing: true, Possible: leading(possible(f, false, true), methods, acr)}
	need.Enrol = len(need.Possible) == 0
	need.App = leads(methods, acr, ByApp) || f.Password && leads(methods, acr, ByApp, ByPassword)
	return need, nil
}

// leading returns the user's methods that lead to a class, alone or together with another one.
func leading(can, methods []string, acr string) (out []string) {
	for _, m := range can {
		if leads(methods, acr, m) {
			out = append(out, m)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, m := range can {
		if slices.ContainsFunc(can, func(n string) bool { return leads(methods, acr, m, n) }) {
			out = append(out, m)
		}
	}
	return out
}

// leads reports whether a session with additional methods has a class.
func leads(methods []string, acr string, more ...string) bool {
	for _, m := range more {
		methods = With(methods, m)
	}
	return oauth.ACRSatisfies(ACR(methods), acr)
}

// With returns the methods of a session after one more was used. A passkey is used in this browser,
// so it no longer matters that another device approved the session.
func With(methods []string, m string) []string {
	out := slices.Clone(methods)
	if m == ByPasskey {
		out = slices.DeleteFunc(out, func(m string) bool { return m == ByOtherDevice })
	}
	if !slices.Contains(out, m) {
		out = append(out, m)
	}
	return out
}
