package secevent

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const set = `{"iss":"https://idp.example.com/","jti":"756E69717565206964656E746966696572","iat":1508184845,` +
	`"aud":"636C69656E745F6964","events":{%s}}`

func parsed(t *testing.T, events string) (Token, error) {
	t.Helper()
	return Parse([]byte(strings.Replace(set, "%s", events, 1)))
}

func TestParse(t *testing.T) {
	iss := func(sub string) Target { return Target{Issuer: "https://idp.example.com/", Subject: sub} }
	for name, tt := range map[string]struct {
		events string
		reason Reason
		want   []Target
	}{
		"RISC 1.0 figure 1, with a subject_type as Google has it": {
			`"` + AccountDisabled + `":{"subject":{"subject_type":"iss-sub","iss":"https://idp.example.com/",` +
				`"sub":"7375626A656374"},"reason":"hijacking"}`,
			ReasonAccount, []Target{iss("7375626A656374")}},
		"CAEP 1.0 3.1, a complex subject before SSF 1.0, as Okta sends it": {
			`"` + SessionRevoked + `":{"subject":{"session":{"format":"opaque","id":"dMTlD"},` +
				`"user":{"format":"iss_sub","iss":"https://idp.example.com/","sub":"99beb27c"},` +
				`"tenant":{"format":"opaque","id":"123456789"}},"event_timestamp":1508184000}`,
			ReasonSession, []Target{{Issuer: "https://idp.example.com/", Subject: "99beb27c", SessionID: "dMTlD"}}},
		"a change of credentials ends all sessions, whichever is named": {
			`"` + CredentialChange + `":{"subject":{"format":"complex",` +
				`"user":{"format":"iss_sub","iss":"https://idp.example.com/","sub":"1"},` +
				`"session":{"format":"opaque","id":"s"}}}`,
			ReasonCredentials, []Target{iss("1")}},
		"aliases, of which one is known": {
			`"` + AccountPurged + `":{"subject":{"format":"aliases","identifiers":[` +
				`{"format":"email","email":"a@example.com"},` +
				`{"format":"iss_sub","iss":"https://idp.example.com/","sub":"1"}]}}`,
			ReasonAccount, []Target{iss("1")}},
		"an opaque id is a session or a person": {
			`"` + SessionRevoked + `":{"subject":{"format":"opaque","id":"x"}}`,
			ReasonSession, []Target{{SessionID: "x"}, {Subject: "x"}}},
		"the stronger reason counts": {
			`"` + SessionRevoked + `":{"subject":{"format":"opaque","id":"x"}},` +
				`"` + AccountDisabled + `":{"subject":{"format":"opaque","id":"x"}}`,
			ReasonAccount, []Target{{SessionID: "x"}, {Subject: "x"}, {Subject: "x"}}},
	} {
		t.Run("AS-245: "+name, func(t *testing.T) {
			got, err := parsed(t, tt.events)
			if err != nil || got.Reason != tt.reason || len(got.Targets) != len(tt.want) {
				t.Fatalf("got %+v, %v", got, err)
			}
			want := map[Target]int{}
			for _, w := range tt.want {
				want[w]++
			}
			for _, g := range got.Targets {
				if want[g]--; want[g] < 0 {
					t.Errorf("got %+v, want %+v", got.Targets, tt.want)
				}
			}
			if got.At.After(got.IssuedAt) {
				t.Errorf("it happened at %v, after its report at %v", got.At, got.IssuedAt)
			}
		})
	}
	for name, events := range map[string]string{
		"an e-mail address":   `"` + AccountDisabled + `":{"subject":{"format":"email","email":"a@example.com"}}`,
		"a phone number":      `"` + AccountDisabled + `":{"subject":{"format":"phone_number","phone_number":"+1"}}`,
		"a session alone":     `"` + AccountDisabled + `":{"subject":{"session":{"format":"opaque","id":"x"}}}`,
		"a device":            `"` + SessionRevoked + `":{"subject":{"device":{"format":"opaque","id":"x"}}}`,
		"nothing":             `"` + SessionRevoked + `":{}`,
		"iss_sub without sub": `"` + SessionRevoked + `":{"subject":{"format":"iss_sub","iss":"https://a"}}`,
		"iss_sub without iss": `"` + SessionRevoked + `":{"subject":{"format":"iss_sub","sub":"1"}}`,
		"aliases of aliases": `"` + SessionRevoked + `":{"subject":{"format":"aliases",` +
			`"identifiers":[{"format":"aliases","identifiers":[]}]}}`,
		"an event of no shape": `"` + SessionRevoked + `":7`,
	} {
		t.Run("AS-245: the subject is "+name, func(t *testing.T) {
			if got, err := parsed(t, events); err == nil {
				t.Errorf("got %+v", got)
			}
		})
	}
	t.Run("AS-245: it is for one of the audiences, by the issuer, and in time", func(t *testing.T) {
		token, err := parsed(t, `"`+Verification+`":{"state":"x"}`)
		if err != nil {
			t.Fatal(err)
		}
		x := Expected{Issuer: token.Issuer, Audience: token.Audience, Now: token.IssuedAt.Add(Window - time.Second)}
		if err := token.Check(x); err != nil {
			t.Error(err)
		}
		for _, edit := range []func(*Expected){
			func(x *Expected) { x.Issuer = "https://idp.example.com" },
			func(x *Expected) { x.Audience = []string{""} },
			func(x *Expected) { x.Audience = nil },
			func(x *Expected) { x.Now = token.IssuedAt.Add(Window) },
			func(x *Expected) { x.Now = token.IssuedAt.Add(-2 * Leeway) },
		} {
			bad := x
			edit(&bad)
			if token.Check(bad) == nil {
				t.Errorf("%+v is believed", bad)
			}
		}
	})
}

func TestParseDuplicate(t *testing.T) {
	events := `"events":{"` + SessionRevoked + `":{"subject":{"format":"opaque","id":"x"}}}`
	good := `{"iss":"a","jti":"b","iat":1,"aud":["c"],` + events
	if _, err := Parse([]byte(good + `}`)); err != nil {
		t.Fatal(err)
	}
	for _, twice := range []string{`,"iss":"z"`, `,"I\u017fS":"z"`, `,"x":{"a":1,"a":2}`} {
		if _, err := Parse([]byte(good + twice + `}`)); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: got %v", twice, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"iss":"a","jti":"b","iat":1,"aud":["c"],"events":{"` + SessionRevoked + `":{"subject":{"format":"opaque","id":"x"}}}}`)
	f.Add(`{"iss":"a","jti":"b","iat":1e300,"aud":{},"events":{"x":{}},"sub_id":{"format":"complex","user":{"format":"complex"}}}`)
	f.Add(`[]`)
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"secevent+jwt"}`))
	f.Fuzz(func(t *testing.T, payload string) {
		_, _ = Issuer(header + "." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".AAAA")
		got, err := Parse([]byte(payload))
		if err != nil {
			return
		}
		if got.ID == "" || got.At.After(got.IssuedAt) || got.Reason != "" && len(got.Targets) == 0 {
			t.Errorf("%s is %+v", payload, got)
		}
		for _, target := range got.Targets {
			if target.Subject == "" && target.SessionID == "" {
				t.Errorf("%s names every person", payload)
			}
		}
		if !json.Valid([]byte(payload)) {
			t.Errorf("%q was read", payload)
		}
	})
}
