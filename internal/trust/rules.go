package trust

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// skew is the allowed difference to an issuer's clock.
const skew = 30 * time.Second

// typeIDJAG is the typ of an ID-JAG. types lists the typ values of workload assertions, including
// SPIFFE's. A token for another purpose is not accepted (RFC 8725 §3.11, AS-181, AS-209).
const typeIDJAG = "oauth-id-jag+jwt"

var types = []string{"", "jwt", "jose"}

// examination is the check of one assertion against one entry.
type examination struct {
	ctx   context.Context //nolint:containedctx // of one call
	now   time.Time
	us    audiences
	entry *entry
	keys  *keySet
	token *token
	out   *Assertion
}

// audiences lists the names of this server in aud.
type audiences struct{ issuer, token string }

// rule is one step of an examination. It fills in the fields that it checks.
type rule struct {
	name  Rule
	check func(*examination) *Refusal
}

// ruleset lists the rules in order. The results of rules before the signature can be disclosed to
// any stranger.
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
	return errIssuer // the same error as for an unknown issuer
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

// signature checks the signature with the keys of the entry's issuer alone (AS-182, AS-230).
func (x *examination) signature() *Refusal {
	if !x.token.tried { // the issuer's other entries have the same keys
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

// audience checks aud. An ID-JAG must name only this server, by its issuer identifier or an alias
// (AS-184). A workload assertion may also name the token endpoint, and a trailing slash is ignored
// (AS-202).
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
	// An assertion that also names another server could have been presented there before.
	if slices.ContainsFunc(list, func(aud string) bool { return !slices.Contains(names, aud) }) {
		return wrong
	}
	return nil
}

// required checks the required claims (AS-183, AS-201), except jti.
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

// times compares exp, nbf and iat with this server's clock (AS-189, AS-203).
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

// id reads jti, or uses the digest of the assertion if the entry permits it (AS-234).
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

// subject sets the name of the workload, or of the account to create for a user.
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

// further returns how many rules passed. The refusal of the entry with the most is reported.
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

// examine applies every rule and returns the first refusal.
func (x *examination) examine() *Refusal {
	for _, r := range ruleset {
		if refused := r.check(x); refused != nil {
			return refused.of(x.entry.ID)
		}
	}
	x.out.Entry, x.out.Kind = x.entry.TrustEntry, x.entry.Kind
	return nil
}
