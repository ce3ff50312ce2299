package trust

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	maxAct       = 4 << 10 // bytes of act
	maxAMR       = 16
	maxResources = 32
	maxShown     = 100 // characters of a user's name
)

// digest returns the ID of an assertion without jti. It covers only the signed part, because an
// ECDSA signature has a second valid form.
func digest(raw string) string {
	sum := secrets.Hash(raw[:strings.LastIndexByte(raw, '.')])
	return "sha256:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// text returns a claim that is a string of at most MaxText bytes.
func (t *token) text(name string) (string, bool) {
	s, ok := t.claims[name].(string)
	return s, ok && len(s) <= MaxText
}

// optional is text for a claim that may be missing.
func (t *token) optional(name string) (string, bool) {
	if _, has := t.claims[name]; !has {
		return "", true
	}
	return t.text(name)
}

// list returns a claim that is a string or a list of strings.
func (t *token) list(name string) ([]string, bool) {
	switch v := t.claims[name].(type) {
	case string:
		return []string{v}, len(v) <= MaxText
	case []any:
		out := make([]string, 0, len(v))
		for _, one := range v {
			s, ok := one.(string)
			if !ok || len(s) > MaxText {
				return nil, false
			}
			out = append(out, s)
		}
		return out, true
	}
	return nil, false
}

// time returns a claim that is a NumericDate (RFC 7519 §2), between 1970 and the year 5138.
func (t *token) time(name string) (time.Time, bool) {
	var seconds float64
	switch v := t.claims[name].(type) {
	case int:
		seconds = float64(v)
	case float64:
		seconds = v
	default:
		return time.Time{}, false
	}
	if math.IsNaN(seconds) || seconds < 0 || seconds > 1e11 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC(), true
}

// saml reads a SAML subject (ID-JAG §3.1). Its issuer must belong to the same entry. Otherwise a
// company could name the users of another (AS-230).
func (x *examination) saml() *Refusal {
	x.out.SAML = nil
	sub, has := x.token.claims["sub_id"]
	if x.entry.Kind != Enterprise || !has {
		return nil
	}
	members, _ := sub.(map[string]any)
	if claim.Text(members, "format") != "saml_nameid" {
		return nil // another format (RFC 9493), which is ignored
	}
	id := NameID{
		Issuer: claim.Text(members, "issuer"),
		NameID: claim.Text(members, "nameid"),
		Format: claim.Text(members, "nameid_format"),
	}
	switch {
	case id.Issuer == "" || id.NameID == "" || len(id.Issuer)+len(id.NameID)+len(id.Format) > MaxText ||
		!printable(id.NameID): // PostgreSQL cannot store every character
		return refuse(RuleSAML, "The claim sub_id of the assertion has no issuer or no name, or is too long.")
	case !slices.Contains(x.entry.SAMLIssuers, id.Issuer):
		return refuse(RuleSAML, "The assertion names a SAML subject whose issuer does not belong to the trust entry.")
	}
	x.out.SAML = &id
	return nil
}

// key reads cnf (RFC 7800). An assertion with an unknown confirmation is refused, because it cannot
// be checked. The only known one is jkt (RFC 9449 §6.1).
func (x *examination) key() *Refusal {
	x.out.Thumbprint = ""
	cnf, has := x.token.claims["cnf"]
	if !has {
		return nil
	}
	members, _ := cnf.(map[string]any)
	print, ok := members["jkt"].(string)
	sum, err := base64.RawURLEncoding.Strict().DecodeString(print)
	if !ok || len(members) != 1 || err != nil || len(sum) != 32 {
		return refuse(RuleKey, "The claim cnf of the assertion is not the thumbprint of a key (jkt).")
	}
	x.out.Thumbprint = print
	return nil
}

// content reads an identity provider's claims about the user and the client's access. It ignores
// all of them for a workload (AS-208).
func (x *examination) content() *Refusal {
	if x.entry.Kind != Enterprise {
		return nil
	}
	bad := func(name string) *Refusal {
		return refuse(RuleContent, "The claim "+name+" of the assertion is not well formed, or too long.")
	}
	t, out := x.token, x.out
	for _, c := range []struct {
		name string
		to   *string
	}{
		{"tenant", &out.Tenant}, {"aud_tenant", &out.AudienceTenant}, {"aud_sub", &out.AudienceSubject},
		{"acr", &out.ACR},
	} {
		var ok bool
		if *c.to, ok = t.optional(c.name); !ok || !printable(*c.to) {
			return bad(c.name)
		}
	}
	if name := x.resources(); name != "" {
		return bad(name)
	}
	if _, has := t.claims["auth_time"]; has {
		var ok bool
		if out.AuthTime, ok = t.time("auth_time"); !ok || out.AuthTime.After(x.now.Add(skew)) {
			return bad("auth_time")
		}
	}
	if act, has := t.raw["act"]; has {
		if _, object := t.claims["act"].(map[string]any); !object || len(act) > maxAct {
			return bad("act")
		}
		out.Act = json.RawMessage(act)
	}
	if _, has := t.claims["amr"]; has {
		var ok bool
		out.AMR, ok = t.list("amr")
		if !ok || len(out.AMR) > maxAMR || slices.ContainsFunc(out.AMR, func(m string) bool { return !printable(m) }) {
			return bad("amr")
		}
	}
	x.person()
	return nil
}

// resources reads resource and scope. It returns the name of the first malformed claim, or "".
func (x *examination) resources() string {
	t, out := x.token, x.out
	if _, has := t.claims["resource"]; has {
		list, ok := t.list("resource")
		if !ok || len(list) == 0 || len(list) > maxResources {
			return "resource"
		}
		out.Resources = list
	}
	if _, has := t.claims["scope"]; has {
		s, ok := t.claims["scope"].(string)
		fields := strings.Fields(s)
		if !ok || len(fields) > oauth.MaxScopes ||
			slices.ContainsFunc(fields, func(f string) bool { return !oauth.ValidScope(f) }) {
			return "scope"
		}
		out.Scopes = oauth.ParseScopes(s)
	}
	return ""
}

// localPart matches the part of an address before the @: a dot-atom (RFC 5322 §3.2.3). Quoted forms
// and non-ASCII letters are other spellings of an address, or look like one.
var localPart = regexp.MustCompile("\\A[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+\\z")

// person reads the user's name, and the address if the issuer may vouch for its domain.
func (x *examination) person() {
	t, out := x.token, x.out
	if name := strings.TrimSpace(claim.Text(t.claims, "name")); printable(name) {
		if r := []rune(name); len(r) > maxShown {
			name = string(r[:maxShown])
		}
		out.Name = name
	}
	address, _ := t.text("email")
	local, domain, _ := strings.Cut(address, "@")
	_, said := t.claims["email_verified"]
	verified := claim.True(t.claims, "email_verified")
	if !localPart.MatchString(local) || said && !verified {
		return
	}
	// Two non-ASCII letters fold to k and s. They are longer, so equal lengths exclude them.
	if slices.ContainsFunc(x.entry.EmailDomains,
		func(d string) bool { return len(d) == len(domain) && strings.EqualFold(d, domain) }) {
		out.Email, out.EmailVerified = address, verified
	}
}
