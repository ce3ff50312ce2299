package trust

import "github.com/mcp-authd/mcp-authd/oauth"

// Rule names a requirement for assertions. The command trust test prints these names.
type Rule string

// The rules, in the order of evaluation.
const (
	RuleForm      Rule = "form"      // it is a signed JWT within bounds
	RuleIssuer    Rule = "issuer"    // it names an issuer with an entry
	RuleEnabled   Rule = "enabled"   // the entry is not disabled
	RuleType      Rule = "type"      // typ fits the kind of the entry
	RuleKeys      Rule = "keys"      // the keys of the issuer are available
	RuleSignature Rule = "signature" // one of them has signed it
	RuleAudience  Rule = "audience"  // aud names this server
	RuleTimes     Rule = "times"     // it is valid now
	RuleLifetime  Rule = "lifetime"  // its lifetime is within the entry's limit
	RuleClaims    Rule = "claims"    // it has the required claims
	RuleID        Rule = "id"        // it has an ID, or is short-lived enough to use its digest
	RuleMatch     Rule = "match"     // each matcher of the entry matches
	RuleSAML      Rule = "saml"      // the issuer may name the SAML subject
	RuleKey       Rule = "key"       // cnf is a known confirmation of the client's key
	RuleContent   Rule = "content"   // resource, scope, act and so on are well formed
	RuleSubject   Rule = "subject"   // the workload's name can be built
)

// Refusal is the error for an assertion that is not accepted.
type Refusal struct {
	Rule  Rule
	Why   string     // a sentence for the client, without values of claims
	Code  oauth.Code // invalid_grant, or temporarily_unavailable if keys are unavailable
	Entry string     // ID of the entry, "" before one was found
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

// Unwrap returns the cause, or nil.
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
