package trust

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Report contains every verdict on an assertion. It never contains the assertion, and only claims
// that rules name.
type Report struct {
	Accepted bool      `json:"accepted"`
	Entry    string    `json:"entry,omitempty"` // the entry that would accept it
	Kind     Kind      `json:"kind,omitempty"`  // of that entry
	Subject  string    `json:"subject,omitempty"`
	Name     string    `json:"name,omitempty"` // name of the workload
	Refused  string    `json:"refused,omitempty"`
	Code     string    `json:"error,omitempty"` // error code of the token endpoint
	Entries  []Verdict `json:"entries"`         // in the order of trial
}

// Verdict contains the results of one entry's rules.
type Verdict struct {
	Entry string        `json:"entry"`
	Kind  Kind          `json:"kind"`
	Fits  bool          `json:"fits"`
	Rules []RuleVerdict `json:"rules"`
}

// RuleVerdict is the result of one rule, with a reason.
type RuleVerdict struct {
	Rule Rule   `json:"rule"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitempty"`
}

// Explain checks an assertion against every rule of every entry, without issuing a token or
// redeeming the assertion. The error comes from the store or the context.
func (i *Issuers) Explain(ctx context.Context, raw string) (Report, error) {
	out := Report{Entries: []Verdict{}}
	entries, err := i.entries(ctx)
	if err != nil {
		return out, err
	}
	a, err := i.Verify(ctx, raw)
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		out.Refused, out.Code = refused.Why, string(refused.Code)
	case err != nil:
		return out, err
	default:
		out.Accepted, out.Entry, out.Kind, out.Subject, out.Name = true, a.Entry.ID, a.Kind, a.Subject, a.Name
	}
	t, err := parse(raw)
	if err != nil {
		return out, nil // refused as malformed, before any entry
	}
	for _, e := range entries {
		out.Entries = append(out.Entries, i.explain(ctx, t, e))
	}
	return out, ctx.Err()
}

func (i *Issuers) explain(ctx context.Context, t *token, e *entry) Verdict {
	out := Verdict{Entry: e.ID, Kind: e.Kind, Fits: true}
	say := func(name Rule, ok bool, why string) {
		out.Rules = append(out.Rules, RuleVerdict{name, ok, why})
		out.Fits = out.Fits && ok
	}
	if iss, _ := t.text("iss"); iss != e.Issuer {
		say(RuleIssuer, false, fmt.Sprintf("iss is %q, and this entry is for %q", iss, e.Issuer))
		return out
	}
	say(RuleIssuer, true, "iss is "+e.Issuer)
	x := i.examination(ctx, t, e)
	for _, r := range ruleset {
		if r.name == RuleMatch {
			x.explainMatch(say)
			continue
		}
		if refused := r.check(x); refused != nil {
			say(refused.Rule, false, x.detail(refused))
		} else {
			say(r.name, true, x.detail(&Refusal{Rule: r.name}))
		}
	}
	return out
}

// explainMatch reports why each matcher does or does not match.
func (x *examination) explainMatch(say func(Rule, bool, string)) {
	for i := range x.entry.matchers {
		m := &x.entry.matchers[i]
		why := m.describe()
		if m.condition == nil {
			have := texts(lookup(x.token.claims, m.Claim))
			why += fmt.Sprintf("; the assertion has %q", have)
			if have == nil {
				why = m.describe() + "; the assertion has no such claim"
			}
		}
		say(RuleMatch, m.holds(x.token.claims), why)
	}
}

// detail returns the details for the administrator, in addition to the sentence sent to the client.
func (x *examination) detail(r *Refusal) string {
	var more string
	switch r.Rule {
	case RuleIssuer:
		return "the entry is disabled"
	case RuleType:
		more = fmt.Sprintf("typ is %q", x.token.typ)
	case RuleSignature:
		more = fmt.Sprintf("alg %s, kid %q", x.token.alg, x.token.kid)
	case RuleAudience:
		list, _ := x.token.list("aud")
		more = fmt.Sprintf("aud is %q, and this server %s", list, x.us.issuer)
	case RuleTimes:
		more = fmt.Sprintf("from %s to %s, and it is %s", clock(x.out.IssuedAt), clock(x.out.Expires), clock(x.now))
	case RuleLifetime:
		more = fmt.Sprintf("valid for %s, max_ttl is %s", x.out.Expires.Sub(x.out.IssuedAt), x.entry.MaxTTL)
	case RuleID:
		more = "the claim is " + x.entry.idClaim
	case RuleSubject:
		more = x.out.Name
	}
	var parts []string
	for _, p := range []string{r.Why, more} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if r.cause != nil {
		parts = append(parts, r.cause.Error())
	}
	return strings.Join(parts, " ")
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
