package trust

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// skew is how far the clock of an issuer may be from ours.
const skew = 30 * time.Second

// typeIDJAG is typ of an ID-JAG; types are those of a workload's assertion, among them that of SPIFFE.
// A token made for another purpose is none (RFC 8725 §3.11, AS-181, AS-209).
const typeIDJAG = "oauth-id-jag+jwt"

var types = []string{"", "jwt", "jose"}

// examination is one assertion, held against one entry.
type examination struct {
	ctx   context.Context //nolint:containedctx // of one call
	now   time.Time
	us    audiences
	entry *entry
	keys  *keySet
	token *token
	out   *Assertion
}

// audiences are what this server is called in aud.
type audiences struct{ issuer, token string }

// rule is one step of an examination. A rule fills in what it is about.
type rule struct {
	name  Rule
	check func(*examination) *Refusal
}

// ruleset are the rules in their order. What is asked before the signature is what any stranger may be told.
var ruleset = []rule{
	{RuleEnabled, (*examination).enabled},
	{RuleType, (*examination).kind},
	{RuleSignature, (*examination).signature},
	{RuleAudience, (*examination).audience},
	{RuleClaims, (*examination).required},
	{RuleTimes, (*examination).times},
	{RuleLifetime, (*examination).lifetime},
	{RuleID, (*examination).id},
	{RuleMatch, (*examination).match},
	{RuleSAML, (*examination).saml},
	{RuleKey, (*examination).key},
	{RuleContent, (*examination).content},
	{RuleSubject, (*examination).subject},
}

func (x *examination) enabled() *Refusal {
	if x.entry.DisabledAt.IsZero() {
		return nil
	}
	return errIssuer // as if there were no entry
}

var (
	errIssuer     = refuse(RuleIssuer, "The issuer of the assertion is not trusted here.")
	errNotAnIDJAG = refuse(RuleType, "The type of the assertion is not that of an ID-JAG, "+typeIDJAG+".")
	errIDJAG      = refuse(RuleType, "An ID-JAG of this issuer is not accepted: it is trusted for workloads only.")
	errPurpose    = refuse(RuleType, "The assertion is a token that was made for another purpose.")
)

// kind compares typ with the kind of the entry.
func (x *examination) kind() *Refusal {
	switch typ := x.token.typ; {
	case x.entry.Kind == Enterprise && typ == typeIDJAG, x.entry.Kind == Workload && slices.Contains(types, typ):
		return nil
	case x.entry.Kind == Enterprise:
		return errNotAnIDJAG
	case typ == typeIDJAG:
		return errIDJAG
	default:
		return errPurpose
	}
}

// signature: by a key of the entry's issuer alone (AS-182, AS-230).
func (x *examination) signature() *Refusal {
	if !x.token.tried { // the other entries of the issuer have the same keys
		x.token.tried, x.token.unsigned = true, x.verify()
	}
	return x.token.unsigned
}

func (x *examination) verify() *Refusal {
	keys, err := x.keys.of(x.ctx, x.token)
	if errors.Is(err, safehttp.ErrNeverPermitted) {
		return refuse(RuleKeys, "The keys of the issuer are at an address that this server never reads from.").
			because(err)
	}
	if err != nil {
		r := refuse(RuleKeys, "The keys of the issuer cannot be had now. Please try again.").because(err)
		r.Code = oauth.TemporarilyUnavailable
		return r
	}
	if !x.token.verify(keys) {
		return refuse(RuleSignature, "The assertion is not signed by a key of its issuer.")
	}
	return nil
}

// audience: an ID-JAG names this server as its only audience, by its issuer or an alias (AS-184); an
// assertion of a workload may name the token endpoint too, and a final slash is no matter (AS-202).
func (x *examination) audience() *Refusal {
	list, ok := x.token.list("aud")
	wrong := refuse(RuleAudience,
		"The assertion is not for this server: its audience must be the issuer identifier alone.")
	if !ok || len(list) == 0 || x.entry.Kind == Enterprise && len(list) != 1 {
		return wrong
	}
	names := append([]string{x.us.issuer}, x.entry.AudienceAliases...)
	if x.entry.Kind == Workload {
		names = append(names, x.us.issuer+"/", x.us.token, x.us.token+"/")
	}
	// One that names another server as well could have been presented there before.
	if slices.ContainsFunc(list, func(aud string) bool { return !slices.Contains(names, aud) }) {
		return wrong
	}
	return nil
}

// required claims (AS-183, AS-201); jti has a rule of its own.
func (x *examination) required() *Refusal {
	names := []string{"iss", "sub", "aud", "exp", "iat"}
	if x.entry.Kind == Enterprise {
		names = append(names, "client_id")
	}
	for _, name := range names {
		if _, ok := x.token.claims[name]; !ok {
			return refuse(RuleClaims, "The assertion lacks the claim "+name+".")
		}
	}
	var ok [3]bool
	x.out.Issuer, ok[0] = x.token.text("iss")
	x.out.Subject, ok[1] = x.token.text("sub")
	x.out.ClientID, ok[2] = "", true
	if x.entry.Kind == Enterprise {
		x.out.ClientID, ok[2] = x.token.text("client_id")
	}
	if ok != [3]bool{true, true, true} || x.out.Issuer == "" || x.out.Subject == "" ||
		x.entry.Kind == Enterprise && x.out.ClientID == "" || !printable(x.out.Subject) {
		return refuse(RuleClaims, "A required claim of the assertion is empty, too long, or no text.")
	}
	return nil
}

// times compares exp, nbf and iat with our clock (AS-189, AS-203).
func (x *examination) times() *Refusal {
	var ok bool
	if x.out.Expires, ok = x.token.time("exp"); !ok {
		return refuse(RuleTimes, "The claim exp of the assertion is no time.")
	}
	if x.out.IssuedAt, ok = x.token.time("iat"); !ok {
		return refuse(RuleTimes, "The claim iat of the assertion is no time.")
	}
	notBefore := x.out.IssuedAt
	if _, has := x.token.claims["nbf"]; has {
		if notBefore, ok = x.token.time("nbf"); !ok {
			return refuse(RuleTimes, "The claim nbf of the assertion is no time.")
		}
	}
	switch {
	case !x.now.Before(x.out.Expires.Add(skew)):
		return refuse(RuleTimes,
			"The assertion has expired. If it is new, the clock of its issuer or of this server is wrong.")
	case x.out.IssuedAt.After(x.now.Add(skew)):
		return refuse(RuleTimes,
			"The assertion was issued in the future: the clock of its issuer or of this server is wrong.")
	case notBefore.After(x.now.Add(skew)):
		return refuse(RuleTimes,
			"The assertion is not valid yet: the clock of its issuer or of this server is wrong.")
	case !x.out.Expires.After(x.out.IssuedAt):
		return refuse(RuleTimes, "The assertion expires before it was issued.")
	}
	return nil
}

func (x *examination) lifetime() *Refusal {
	if x.out.Expires.Sub(x.out.IssuedAt) > x.entry.MaxTTL {
		return refuse(RuleLifetime, "The assertion is valid for longer than the trust entry permits (max_ttl).")
	}
	return nil
}

// id: jti, or else the digest of the assertion where the entry permits it (AS-234).
func (x *examination) id() *Refusal {
	_, has := x.token.claims[x.entry.idClaim]
	switch id, ok := x.token.text(x.entry.idClaim); {
	case has && (!ok || id == ""):
		return refuse(RuleID, "The id of the assertion is empty, too long, or no text.")
	case has:
		x.out.ID = id
	case *x.entry.RequireJTI:
		return refuse(RuleID, "The assertion lacks the claim jti.")
	default:
		x.out.ID = x.token.digest
	}
	return nil
}

func (x *examination) match() *Refusal {
	for i := range x.entry.matchers {
		if !x.entry.matchers[i].holds(x.token.claims) {
			return refuse(RuleMatch, "No rule of the trust entry for this issuer admits the assertion.")
		}
	}
	return nil
}

// subject names the workload, or the account that a person would get.
func (x *examination) subject() *Refusal {
	if x.entry.name == nil {
		return nil
	}
	name, err := x.entry.name.name(x.token.claims)
	switch {
	case err == nil && x.entry.Kind == Workload:
		x.out.Name = name
	case err == nil:
		x.out.AccountName = name
	case x.entry.Kind == Workload:
		return refuse(RuleSubject, "The workload cannot be named by the subject template of the trust entry.").because(err)
	default:
		return refuse(RuleSubject, "The account cannot be named by the subject template of the trust entry.").because(err)
	}
	return nil
}

// further counts how far an examination came: the entry that came furthest says why.
func further(r *Refusal) int {
	name := r.Rule
	switch name {
	case RuleKeys:
		name = RuleSignature
	case RuleIssuer:
		name = RuleEnabled
	}
	return slices.IndexFunc(ruleset, func(one rule) bool { return one.name == name })
}

// examine applies every rule, and returns the first refusal.
func (x *examination) examine() *Refusal {
	for _, r := range ruleset {
		if refused := r.check(x); refused != nil {
			return refused.of(x.entry.ID)
		}
	}
	x.out.Entry, x.out.Kind = x.entry.TrustEntry, x.entry.Kind
	return nil
}
