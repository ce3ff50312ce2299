package trust

import "github.com/mcp-authd/mcp-authd/oauth"

// Rule names what an assertion has to keep; trust test prints the names.
type Rule string

// The rules, in the order in which they are applied.
const (
	RuleForm      Rule = "form"      // it is a signed JWT within bounds
	RuleIssuer    Rule = "issuer"    // it names an issuer with an entry
	RuleEnabled   Rule = "enabled"   // the entry is not disabled
	RuleType      Rule = "type"      // typ fits the kind of the entry
	RuleKeys      Rule = "keys"      // the keys of the issuer can be had
	RuleSignature Rule = "signature" // one of them has signed it
	RuleAudience  Rule = "audience"  // it is for this server
	RuleTimes     Rule = "times"     // it is valid now
	RuleLifetime  Rule = "lifetime"  // for no longer than the entry allows
	RuleClaims    Rule = "claims"    // it has the claims that are required
	RuleID        Rule = "id"        // it has an id, or is so short-lived that its digest does
	RuleMatch     Rule = "match"     // each matcher of the entry holds
	RuleSAML      Rule = "saml"      // the issuer may name that SAML subject
	RuleKey       Rule = "key"       // what it says of the client's key is understood
	RuleContent   Rule = "content"   // resource, scope, act and so on are well formed
	RuleSubject   Rule = "subject"   // the name of the workload can be made
)

// Refusal says why an assertion is not believed. It is an error.
type Refusal struct {
	Rule  Rule
	Why   string     // a sentence that says nothing of the claims, for the wire
	Code  oauth.Code // invalid_grant, or temporarily_unavailable when keys are out of reach
	Entry string     // id of the entry, "" before one was found
	cause error
}

// Error implements error. It includes the cause and is meant for logs.
func (r *Refusal) Error() string {
	text := "assertion refused by " + string(r.Rule) + ": " + r.Why
	if r.cause != nil {
		text += ": " + r.cause.Error()
	}
	return text
}

// Unwrap returns the cause, nil for none.
func (r *Refusal) Unwrap() error { return r.cause }

func refuse(rule Rule, why string) *Refusal {
	return &Refusal{Rule: rule, Why: why, Code: oauth.InvalidGrant}
}

func (r *Refusal) because(err error) *Refusal {
	c := *r
	c.cause = err
	return &c
}

func (r *Refusal) of(entry string) *Refusal {
	c := *r
	c.Entry = entry
	return &c
}
