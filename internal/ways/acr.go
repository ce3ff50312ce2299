package ways

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// ACR is the authentication context class of a session, "" for none (RFC 9470 §4, AS-238). A provider
// counts as one factor: what it asked for is not known. So does a code or link that replaces a lost
// factor. A proof that was given on another device could have been asked for by a page of another site.
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

// ACRs are the classes that people can reach, the weakest first: none but a passkey leads to the strongest.
func (w *Ways) ACRs() []string {
	if w.cfg.Site.Offered() {
		return oauth.ACRs()
	}
	return []string{oauth.ACRMultiFactor}
}

// AMR are the methods as tokens name them: with the names of RFC 8176 §2 where it has one. Of a passkey
// that verified the person it has two, one for each factor.
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

// Reach is what is missing of a session until it has an authentication context class. A person who has
// nothing that leads there may enrol it.
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

// leading are those of the methods of a person that lead to a class: at once, or else with another one.
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

// leads reports whether a session has a class when more was shown.
func leads(methods []string, acr string, more ...string) bool {
	for _, m := range more {
		methods = With(methods, m)
	}
	return oauth.ACRSatisfies(ACR(methods), acr)
}

// With returns the methods of a session in which a person has shown one more. A passkey was used in this
// very browser, so it does not matter any more that another device let it in.
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
