package oauth

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestBearerChallenge(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    BearerChallenge
		want string
	}{
		{"RS-16 RS-18 no credentials, no error",
			BearerChallenge{
				Scope: Scopes{"mcp"}, ResourceMetadata: "https://h/.well-known/oauth-protected-resource/mcp",
			},
			`Bearer scope="mcp", resource_metadata="https://h/.well-known/oauth-protected-resource/mcp"`},
		{"RS-28 insufficient scope",
			BearerChallenge{
				Error: InsufficientScope, Description: "More is needed.", Scope: Scopes{"a", "b"},
				ResourceMetadata: "https://h/x",
			},
			`Bearer error="insufficient_scope", error_description="More is needed.", scope="a b", resource_metadata="https://h/x"`},
		{"AS-238 RFC 9470 3 insufficient authentication",
			BearerChallenge{
				Error: InsufficientAuthentication, ACRValues: ACRs(), MaxAge: 5 * time.Minute, Scope: Scopes{"a"},
			},
			`Bearer error="insufficient_user_authentication", scope="a", acr_values="https://refeds.org/profile/mfa phr", max_age="300"`},
		{"RS-19 values stay inside the permitted characters",
			BearerChallenge{Error: InvalidToken, Description: "a \"b\", c\\\n"},
			`Bearer error="invalid_token", error_description="a 'b'; c'?"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.c.String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDPoPChallenge(t *testing.T) {
	c := DPoPChallenge{
		BearerChallenge{
			Error: InvalidDPoPProof, Description: "The proof is not valid.", Scope: Scopes{"a", "b"},
			ResourceMetadata: "https://h/x",
		},
		[]string{"ES256", "EdDSA"},
	}
	const want = `DPoP error="invalid_dpop_proof", error_description="The proof is not valid.", scope="a b", algs="ES256 EdDSA", resource_metadata="https://h/x"`
	if got := c.String(); got != want {
		t.Errorf("RS-206: got  %s\nwant %s", got, want)
	}
}

func TestParseChallenges(t *testing.T) {
	p := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for _, tt := range []struct {
		name string
		in   []string
		want []Challenge // nil for an error
	}{
		{"CL-01 one", []string{`Bearer scope="a b", resource_metadata="https://h/x"`},
			[]Challenge{{"Bearer", "", p("scope", "a b", "resource_metadata", "https://h/x")}}},
		{"CL-01 any order, any case, odd white space",
			[]string{"bearer  RESOURCE_METADATA = \"u\" ,\terror=invalid_token"},
			[]Challenge{{"bearer", "", p("resource_metadata", "u", "error", "invalid_token")}}},
		{"CL-01 quoted commas and escapes", []string{`Bearer error_description="a, \"b\" = c", error="x"`},
			[]Challenge{{"Bearer", "", p("error_description", `a, "b" = c`, "error", "x")}}},
		{"CL-01 several in one value", []string{`Basic realm="r", Bearer error="x", DPoP algs="ES256"`},
			[]Challenge{
				{"Basic", "", p("realm", "r")}, {"Bearer", "", p("error", "x")}, {"DPoP", "", p("algs", "ES256")},
			}},
		{"CL-01 several values", []string{`Negotiate`, `Bearer`},
			[]Challenge{{"Negotiate", "", p()}, {"Bearer", "", p()}}},
		{"CL-01 token68", []string{`Negotiate YWJj==, Bearer error=x`},
			[]Challenge{{"Negotiate", "YWJj==", p()}, {"Bearer", "", p("error", "x")}}},
		{"CL-01 empty list elements", []string{`, ,Bearer error="x",,`}, []Challenge{{"Bearer", "", p("error", "x")}}},
		{"CL-01 repeated parameter", []string{`Bearer error="x", error="y"`}, nil},
		{"CL-01 open quote", []string{`Bearer error="x`}, nil},
		{"CL-01 no scheme", []string{`="x"`}, nil},
		{"CL-01 garbage after a value", []string{`Bearer error="x" y`}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseChallenges(tt.in)
			if (err != nil) != (tt.want == nil) || tt.want != nil && !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

// Malformed headers are rejected, never read as a different challenge.
func TestMalformedChallenges(t *testing.T) {
	for name, in := range map[string][]string{
		"a parameter without a scheme":                {`error="x"`},
		"a parameter without a scheme, spaced":        {`error = "x"`},
		"a parameter in a value of its own":           {`Bearer error="x"`, `scope="y"`},
		"no space behind the scheme":                  {`Bearer"x"`},
		"a slash behind the scheme":                   {`Bearer/x`},
		"no name":                                     {`Bearer error="x", ="y"`},
		"no value":                                    {`Bearer scope="y", error=`},
		"no value before the next parameter":          {`Bearer error=, scope="y"`},
		"a value that is no token":                    {`Bearer error=x/y`},
		"an escape at the end":                        {`Bearer error="x\`},
		"a parameter behind the single value":         {`Negotiate YWJj==, error="x"`},
		"a repeated parameter in other letters":       {`Bearer error="x", ERROR="x"`},
		"more than is read, in one value":             {`Bearer error="` + strings.Repeat("x", maxChallenge) + `"`},
		"more than is read, in many values, all good": strings.Split(strings.Repeat("Bearer,", maxChallenge/6+1), ","),
	} {
		t.Run("CL-01 "+name, func(t *testing.T) {
			if got, err := ParseChallenges(in); !errors.Is(err, ErrChallenge) || got != nil {
				t.Errorf("got %+v, %v, want ErrChallenge", got, err)
			}
		})
	}
}

func TestOddChallenges(t *testing.T) {
	none := map[string]string{}
	for name, tt := range map[string]struct {
		in   string
		want []Challenge
	}{
		"nothing":         {"", nil},
		"only separators": {" ,\t,", nil},
		"a tab behind the scheme": {
			"Bearer\terror=x", []Challenge{{"Bearer", "", map[string]string{"error": "x"}}},
		},
		"an empty value in quotes": {
			`Bearer error=""`, []Challenge{{"Bearer", "", map[string]string{"error": ""}}},
		},
		"white space at the end": {
			"Bearer error=x \t", []Challenge{{"Bearer", "", map[string]string{"error": "x"}}},
		},
		"all characters of a single value": {"Negotiate aZ09-._~+/=", []Challenge{{"Negotiate", "aZ09-._~+/=", none}}},
		"white space behind a single value": {
			"Negotiate YWJj \t,Bearer", []Challenge{{"Negotiate", "YWJj", none}, {"Bearer", "", none}},
		},
		"white space behind a scheme": {
			"Bearer error=x, Negotiate \t",
			[]Challenge{{"Bearer", "", map[string]string{"error": "x"}}, {"Negotiate", "", none}},
		},
		"a comma behind a scheme": {
			"Negotiate,Bearer", []Challenge{{"Negotiate", "", none}, {"Bearer", "", none}},
		},
		"all characters of a token": {"!#$%&'*+-.^_`|~aZ09", []Challenge{{"!#$%&'*+-.^_`|~aZ09", "", none}}},
		"as much as is read": {
			`Bearer error="` + strings.Repeat("x", maxChallenge-15) + `"`,
			[]Challenge{{"Bearer", "", map[string]string{"error": strings.Repeat("x", maxChallenge-15)}}},
		},
	} {
		t.Run("CL-01 "+name, func(t *testing.T) {
			if got, err := ParseChallenges([]string{tt.in}); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func FuzzParseChallenges(f *testing.F) {
	f.Add(`Basic realm="r", Bearer error="x", DPoP algs="ES256"`)
	f.Add(`Negotiate YWJj==`)
	f.Add(`Bearer a="\"`)
	f.Fuzz(func(t *testing.T, in string) {
		list, err := ParseChallenges([]string{in})
		if err != nil {
			return
		}
		for _, c := range list {
			if c.Scheme == "" || c.Token != "" && len(c.Params) > 0 {
				t.Errorf("%q gives %+v", in, c)
			}
		}
	})
}

// FuzzBearerChallenge checks that for any input the header parses back to one challenge.
func FuzzBearerChallenge(f *testing.F) {
	f.Add("invalid_token", "desc, \"quoted\"", "a b")
	f.Fuzz(func(t *testing.T, code, desc, scope string) {
		c := BearerChallenge{
			Error: Code(code), Description: desc, Scope: ParseScopes(scope), ResourceMetadata: "https://h/x",
		}
		got, err := ParseChallenges([]string{c.String()})
		if err != nil || len(got) != 1 || got[0].Params["resource_metadata"] != "https://h/x" ||
			got[0].Params["scope"] != c.Scope.String() {
			t.Errorf("%s: got %+v, %v", c, got, err)
		}
	})
}
