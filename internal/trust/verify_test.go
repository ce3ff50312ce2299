package trust

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var thumbprint = base64.RawURLEncoding.EncodeToString(make([]byte, 32))

func TestIDJAG(t *testing.T) {
	r := newRig(t)
	i := r.issuers(t, nil)
	at := func(d time.Duration) int64 { return r.now.Add(d).Unix() }
	for _, tt := range []struct {
		name    string
		changes claims
		want    Rule
	}{
		{"AS-184 aud is a string", nil, ""},
		{"AS-184 aud is a list of one", claims{"aud": []string{us}}, ""},
		{"AS-184 aud is an alias", claims{"aud": us + "/"}, ""},
		{"AS-184 aud is another slash form", claims{"aud": us + "//"}, RuleAudience},
		{"AS-184 aud is the token endpoint", claims{"aud": us + "/token"}, RuleAudience},
		{"AS-184 aud is a list of two", claims{"aud": []string{us, "https://other.example"}}, RuleAudience},
		{"AS-184 aud is this server, twice", claims{"aud": []string{us, us}}, RuleAudience},
		{"AS-184 aud is foreign", claims{"aud": "https://other.example"}, RuleAudience},
		{"AS-184 aud is empty", claims{"aud": []string{}}, RuleAudience},
		{"AS-184 aud is a number", claims{"aud": 1}, RuleAudience},
		{"AS-183 without iss", claims{"iss": nil}, RuleIssuer},
		{"AS-183 without sub", claims{"sub": nil}, RuleClaims},
		{"AS-183 without aud", claims{"aud": nil}, RuleAudience},
		{"AS-183 without client_id", claims{"client_id": nil}, RuleClaims},
		{"AS-183 without jti", claims{"jti": nil}, RuleID},
		{"AS-183 without exp", claims{"exp": nil}, RuleClaims},
		{"AS-183 without iat", claims{"iat": nil}, RuleClaims},
		{"AS-183 sub is empty", claims{"sub": ""}, RuleClaims},
		{"AS-183 sub is too long", claims{"sub": strings.Repeat("a", 1025)}, RuleClaims},
		{"AS-183 jti is empty", claims{"jti": ""}, RuleID},
		{"AS-189 expired within the skew", claims{"iat": at(-5 * time.Minute), "exp": at(-29 * time.Second)}, ""},
		{"AS-189 expired", claims{"iat": at(-5 * time.Minute), "exp": at(-30 * time.Second)}, RuleTimes},
		{"AS-189 issued ahead, within the skew", claims{"iat": at(30 * time.Second)}, ""},
		{"AS-189 the clock is two minutes off", claims{"iat": at(2 * time.Minute)}, RuleTimes},
		{"AS-189 not valid yet", claims{"nbf": at(time.Minute)}, RuleTimes},
		{"AS-189 valid for longer than an hour", claims{"exp": at(time.Hour + time.Second)}, RuleLifetime},
		{"AS-189 far in the future", claims{"exp": 1e11}, RuleLifetime},
		{"AS-189 exp is no time", claims{"exp": "soon"}, RuleTimes},
		{"AS-189 exp is beyond all times", claims{"exp": 1e300}, RuleTimes},
		{"AS-189 exp before iat", claims{"exp": at(-time.Second), "iat": at(0)}, RuleTimes},
		{"AS-230 a SAML subject of the entry", claims{"sub_id": claims{
			"format": "saml_nameid", "issuer": "https://saml.example", "nameid": "n"}}, ""},
		{"AS-230 a foreign SAML subject", claims{"sub_id": claims{
			"format": "saml_nameid", "issuer": "https://other.example", "nameid": "n"}}, RuleSAML},
		{"AS-230 a SAML subject without issuer", claims{"sub_id": claims{
			"format": "saml_nameid", "nameid": "n"}}, RuleSAML},
		{"AS-230 a subject of another format", claims{"sub_id": claims{"format": "email", "email": "a@b.c"}}, ""},
		{"cnf", claims{"cnf": claims{"jkt": thumbprint}}, ""},
		{"cnf of another kind", claims{"cnf": claims{"x5t#S256": thumbprint}}, RuleKey},
		{"cnf with a text that is no thumbprint", claims{"cnf": claims{"jkt": "x"}}, RuleKey},
		{"cnf is no object", claims{"cnf": thumbprint}, RuleKey},
		{"resource is a number", claims{"resource": 1}, RuleContent},
		{"resource is an empty list", claims{"resource": []string{}}, RuleContent},
		{"scope is a list", claims{"scope": []string{"a"}}, RuleContent},
		{"scope has a quote", claims{"scope": `a "b"`}, RuleContent},
		{"act is no object", claims{"act": "x"}, RuleContent},
		{"act is too long", claims{"act": claims{"sub": strings.Repeat("a", 5000)}}, RuleContent},
		{"amr is a number", claims{"amr": 1}, RuleContent},
		{"auth_time in the future", claims{"auth_time": at(time.Hour)}, RuleContent},
		{"acr has a control character", claims{"acr": "a\n"}, RuleContent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got := verify(t, i, r.company.sign(t, "oauth-id-jag+jwt", r.idJAG().with(tt.changes)))
			wantRule(t, got, tt.want)
			if tt.want == RuleTimes && strings.Contains(tt.name, "clock") && !strings.Contains(got.Why, "clock") {
				t.Errorf("%q says nothing of a clock", got.Why)
			}
		})
	}
}

func wantRule(t *testing.T, got *Refusal, want Rule) {
	t.Helper()
	switch {
	case got == nil && want == "":
	case got == nil:
		t.Errorf("accepted, want refused by %s", want)
	case got.Rule != want || got.Code != oauth.InvalidGrant:
		t.Errorf("got %v (%s), want %q", got, got.Code, want)
	}
}

// AS-230: the claims of an ID-JAG reach the Assertion.
func TestIDJAGSays(t *testing.T) {
	r := newRig(t)
	a, refused := verify(t, r.issuers(t, nil), r.company.sign(t, "application/OAuth-ID-JAG+jwt", r.idJAG().with(claims{
		"tenant": "t", "aud_tenant": "at", "aud_sub": "as", "email": "Ann@Example.com", "email_verified": true,
		"name": " Ann ", "acr": "urn:acr", "amr": []string{"pwd", "hwk"}, "auth_time": r.now.Unix(),
		"act": claims{"sub": "agent", "sub_profile": "ai_agent"}, "cnf": claims{"jkt": thumbprint},
		"sub_id": claims{
			"format": "saml_nameid", "issuer": "https://saml.example", "nameid": "n", "nameid_format": "f",
		},
		"resource": []string{"https://a.example", "https://b.example"},
	})))
	if refused != nil {
		t.Fatal(refused)
	}
	if a.Entry.ID != "company" || a.Entry.MaxTTL != time.Hour {
		t.Errorf("got entry %+v", a.Entry)
	}
	a.Entry = storage.TrustEntry{}
	want := Assertion{
		Kind: Enterprise, Issuer: company, Subject: "u1", Tenant: "t", AudienceTenant: "at", AudienceSubject: "as",
		ClientID: "c", ID: "j1", SAML: &NameID{"https://saml.example", "n", "f"}, Email: "Ann@Example.com",
		EmailVerified: true, Name: "Ann", Resources: []string{"https://a.example", "https://b.example"},
		Scopes: oauth.Scopes{"notes:read"}, IssuedAt: r.now.UTC(), Expires: r.now.Add(5 * time.Minute).UTC(),
		AuthTime: r.now.UTC(), ACR: "urn:acr", AMR: []string{"pwd", "hwk"},
		Act: []byte(`{"sub":"agent","sub_profile":"ai_agent"}`), Thumbprint: thumbprint,
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
}

// AS-192: the administrator can set the template for account names.
func TestAccountName(t *testing.T) {
	r := newRig(t)
	r.entries[0].CreatePeople, r.entries[0].Subject = true, "acme-{{.login}}"
	i := r.issuers(t, nil)
	a, refused := verify(t, i, r.company.sign(t, typeIDJAG, r.idJAG().with(claims{"login": "ann", "name": "Ann"})))
	if refused != nil || a.AccountName != "acme-ann" || a.Name != "Ann" {
		t.Errorf("got %q, %q, %v", a.AccountName, a.Name, refused)
	}
	_, refused = verify(t, i, r.company.sign(t, typeIDJAG, r.idJAG().with(claims{"jti": "j2"})))
	if refused == nil || refused.Rule != RuleSubject {
		t.Errorf("without the claim: got %v, want %s", refused, RuleSubject)
	}
}

func TestEmail(t *testing.T) {
	r := newRig(t)
	i := r.issuers(t, nil)
	for _, tt := range []struct {
		name     string
		claims   claims
		want     string
		verified bool
	}{
		{"in a domain of the entry", claims{"email": "a@example.com"}, "a@example.com", false},
		{"and verified", claims{"email": "a@EXAMPLE.com", "email_verified": true}, "a@EXAMPLE.com", true},
		{"and not verified", claims{"email": "a@example.com", "email_verified": false}, "", false},
		{"and said to be something", claims{"email": "a@example.com", "email_verified": "maybe"}, "", false},
		{"in another domain", claims{"email": "a@other.example", "email_verified": true}, "", false},
		{"in a domain below", claims{"email": "a@x.example.com"}, "", false},
		{"with two @", claims{"email": "a@evil.example@example.com"}, "", false},
		{"with a letter that folds to k", claims{"email": "a@example.\u212aom"}, "", false},
		{"without a name", claims{"email": "@example.com"}, "", false},
		{"with a letter before the @ that folds to k", claims{"email": "\u212aa@example.com"}, "", false},
		{"with a capital that folds to i", claims{"email": "\u0130a@example.com"}, "", false},
		{"in quotes", claims{"email": `"a"@example.com`}, "", false},
		{"with a blank", claims{"email": "a @example.com"}, "", false},
		{"with a tag", claims{"email": "a+b@example.com"}, "a+b@example.com", false},
	} {
		t.Run("an address "+tt.name, func(t *testing.T) {
			a, refused := verify(t, i, r.company.sign(t, typeIDJAG, r.idJAG().with(tt.claims)))
			if refused != nil || a.Email != tt.want || a.EmailVerified != tt.verified {
				t.Errorf("got %q, %v, %v", a.Email, a.EmailVerified, refused)
			}
		})
	}
}

func TestWorkload(t *testing.T) {
	r := newRig(t)
	i := r.issuers(t, nil)
	at := func(d time.Duration) int64 { return r.now.Add(d).Unix() }
	for _, tt := range []struct {
		name    string
		typ     string
		changes claims
		want    Rule
	}{
		{"AS-202 aud is the issuer", "JWT", nil, ""},
		{"AS-202 aud is the issuer with a slash", "", claims{"aud": us + "/"}, ""},
		{"AS-202 aud is the token endpoint", "JOSE", claims{"aud": us + "/token"}, ""},
		{"AS-202 aud is the token endpoint with a slash", "", claims{"aud": []string{us + "/token/"}}, ""},
		{"AS-202 aud is an alias", "", claims{"aud": "mcp"}, ""},
		{"AS-202 aud is foreign", "", claims{"aud": "https://other.example"}, RuleAudience},
		{"AS-202 aud is another path", "", claims{"aud": us + "/authorize"}, RuleAudience},
		{"AS-202 aud is a second server too", "", claims{"aud": []string{us, "https://other.example"}}, RuleAudience},
		{"AS-201 without sub", "", claims{"sub": nil}, RuleClaims},
		{"AS-201 without exp", "", claims{"exp": nil}, RuleClaims},
		{"AS-201 without iat", "", claims{"iat": nil}, RuleClaims},
		{"AS-201 without jti", "", claims{"jti": nil}, RuleID},
		{"AS-203 expired", "", claims{"iat": at(-time.Hour), "exp": at(-time.Minute)}, RuleTimes},
		{"AS-204 a fork", "", claims{"repository": "fork/r"}, RuleMatch},
		{"AS-204 another branch", "", claims{"ref": "refs/pull/1/merge"}, RuleMatch},
		{"AS-204 a branch with a slash, which * does not match", "", claims{"ref": "refs/heads/a/b"}, RuleMatch},
		{"AS-204 an expression does not hold", "", claims{"event_name": "pull_request"}, RuleMatch},
		{"AS-204 a claim is missing", "", claims{"event_name": nil}, RuleMatch},
		{"AS-209 an ID-JAG of a workload issuer", typeIDJAG, claims{"client_id": "c"}, RuleType},
		{"AS-209 a client assertion", "client-authentication+jwt", nil, RuleType},
		{"AS-209 an access token", "at+jwt", nil, RuleType},
		{"AS-209 a proof", "dpop+jwt", nil, RuleType},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, got := verify(t, i, r.platform.sign(t, tt.typ, r.build().with(tt.changes)))
			wantRule(t, got, tt.want)
			if got == nil && (a.Kind != Workload || a.Name != "ci:o/r" || a.ID != "j1" || a.ClientID != "") {
				t.Errorf("got %+v", a)
			}
			if a.Scopes != nil || a.Resources != nil {
				t.Errorf("AS-208 took %q and %q from the claims of a workload", a.Scopes, a.Resources)
			}
		})
	}
	t.Run("AS-209 a workload's assertion of an enterprise issuer", func(t *testing.T) {
		_, got := verify(t, i, r.company.sign(t, "JWT", r.idJAG()))
		wantRule(t, got, RuleType)
	})
	t.Run("AS-181 a type that only begins like that of an ID-JAG", func(t *testing.T) {
		_, got := verify(t, i, r.company.sign(t, typeIDJAG+"x", r.idJAG()))
		wantRule(t, got, RuleType)
	})
}

func TestSignature(t *testing.T) {
	r := newRig(t)
	i := r.issuers(t, nil)
	stranger := newSigner(t, "c1")
	byOther := func(iss string) string { return r.company.sign(t, typeIDJAG, r.idJAG().with(claims{"iss": iss})) }
	for name, tt := range map[string]struct {
		raw  string
		want Rule
	}{
		"AS-182 by an untrusted key":               {stranger.sign(t, typeIDJAG, r.idJAG()), RuleSignature},
		"AS-230 kid and key of A under iss of B":   {r.platform.sign(t, typeIDJAG, r.idJAG()), RuleSignature},
		"AS-230 iss of A under the key of B":       {r.company.sign(t, "", r.build()), RuleSignature},
		"AS-205 an issuer that is not listed":      {byOther("https://x.example"), RuleIssuer},
		"AS-205 an issuer with a slash at its end": {byOther(company + "/"), RuleIssuer},
		"AS-182 HS256": {
			signer{[]byte(strings.Repeat("k", 32)), jose.HS256, "c1"}.sign(t, typeIDJAG, r.idJAG()), RuleForm},
		"AS-182 none": {
			base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + ".e30.", RuleForm},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := verify(t, i, tt.raw)
			wantRule(t, got, tt.want)
		})
	}
	t.Run("AS-182 a key that is bound to another algorithm", func(t *testing.T) {
		r.entries[0].JWKS = strings.Replace(r.entries[0].JWKS, "ES256", "ES512", 1)
		_, got := verify(t, r.issuers(t, nil), r.company.sign(t, typeIDJAG, r.idJAG()))
		wantRule(t, got, RuleSignature)
	})
}

func TestForm(t *testing.T) {
	r := newRig(t)
	i := r.issuers(t, nil)
	good := r.company.sign(t, typeIDJAG, r.idJAG())
	for name, raw := range map[string]string{
		"nothing":            "",
		"longer than 16 KiB": good + strings.Repeat("A", 16<<10),
		"two segments":       good[:strings.LastIndexByte(good, '.')],
		"padded":             strings.Replace(good, ".", "=.", 1),
		"a blank in front":   " " + good,
		"no object":          r.company.signText(t, typeIDJAG, `[]`),
		"a second document":  r.company.signText(t, typeIDJAG, `{} {}`),
		"a member twice":     r.company.signText(t, typeIDJAG, `{"iss":"`+company+`","iss":"`+company+`"}`),
		"one in two cases":   r.company.signText(t, typeIDJAG, `{"iss":"`+company+`","i\u017fs":"`+company+`"}`),
		"an inner one twice": r.company.signText(t, typeIDJAG, `{"iss":"`+company+`","a":{"b":1,"b":1}}`),
		"nested too deeply": r.company.signText(t, typeIDJAG,
			`{"iss":"`+company+`","a":`+strings.Repeat("[", 20)+strings.Repeat("]", 20)+`}`),
		"too many values": r.company.signText(t, typeIDJAG, `{"a":[`+strings.Repeat("1,", 600)+`1]}`),
	} {
		t.Run("AS-203 "+name, func(t *testing.T) {
			_, got := verify(t, i, raw)
			wantRule(t, got, RuleForm)
		})
	}
}

// AS-234: without jti an assertion is valid for at most ten minutes, and its digest is its ID.
func TestWithoutID(t *testing.T) {
	r := newRig(t)
	no := false
	r.entries[1].RequireJTI = &no
	i := r.issuers(t, nil)
	raw := r.platform.sign(t, "", r.build().with(claims{"jti": nil}))
	a, refused := verify(t, i, raw)
	if refused != nil || !strings.HasPrefix(a.ID, "sha256:") {
		t.Fatalf("got %q, %v", a.ID, refused)
	}
	again, _ := verify(t, i, r.platform.sign(t, "", r.build().with(claims{"jti": nil})))
	if again.ID != a.ID {
		t.Error("AS-234: the same claims with another signature have another id")
	}
	for _, other := range []string{strings.Replace(raw, ".", "\n.", 1), raw[:4] + "\r\n" + raw[4:], spare(t, raw)} {
		_, refused = verify(t, i, other)
		if wantRule(t, refused, RuleForm); refused == nil {
			t.Error("AS-234: the same assertion in other letters would be good once more")
		}
	}
	_, refused = verify(t, i, r.platform.sign(t, "",
		r.build().with(claims{"jti": nil, "exp": r.now.Add(10*time.Minute + time.Second).Unix()})))
	wantRule(t, refused, RuleLifetime)
	r.entries[1].MaxTTL = 11 * time.Minute
	if _, err := Check(r.entries[1]); err == nil {
		t.Error("AS-234: an entry without require_jti may take assertions of more than ten minutes")
	}
}

// AS-204: several entries of one issuer are alternatives, and the first match applies.
func TestAlternatives(t *testing.T) {
	r := newRig(t)
	other := r.entries[1]
	other.ID, other.Subject = "release", "release:{{.ref}}"
	other.Match = []storage.TrustMatch{{Claim: "ref", Glob: "refs/tags/*"}}
	r.entries = append(r.entries, other)
	i := r.issuers(t, nil)
	a, _ := verify(t, i, r.platform.sign(t, "", r.build().with(claims{"ref": "refs/tags/v1"})))
	b, _ := verify(t, i, r.platform.sign(t, "", r.build()))
	if a.Entry.ID != "release" || a.Name != "release:refs/tags/v1" || b.Entry.ID != "ci" {
		t.Errorf("got %q, %q and %q", a.Entry.ID, a.Name, b.Entry.ID)
	}
	t.Run("AS-230 entries of one issuer with other keys are refused", func(t *testing.T) {
		other.JWKS = published(t, newSigner(t, "x"))
		if err := CheckAll(us, []storage.TrustEntry{r.entries[1], other}); err == nil {
			t.Error("accepted")
		}
	})
}

// spare sets an unused bit in the last letter of a JWT's header.
func spare(t *testing.T, raw string) string {
	t.Helper()
	header, rest, _ := strings.Cut(raw, ".")
	for pad := ""; len(pad) < 3; pad += " " { // spaces around JSON have no meaning
		b, err := base64.RawURLEncoding.DecodeString(header)
		if err != nil {
			t.Fatal(err)
		}
		text := base64.RawURLEncoding.EncodeToString(append(b, pad...))
		for _, last := range "BCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh" {
			other := text[:len(text)-1] + string(last)
			d, err := base64.RawURLEncoding.DecodeString(other)
			if err == nil && string(d) == string(b)+pad && other != text {
				return other + "." + rest
			}
		}
	}
	t.Fatal("each header has no spare bits")
	return ""
}
