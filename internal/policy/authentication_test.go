package policy

import (
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var guarded = storage.Resource{URI: "https://mcp.example.com/mcp", Scopes: []storage.ScopeText{
	{Name: "mcp"},
	{Name: "pay", MaxAge: storage.Age(5 * time.Minute)},
	{Name: "delete", ACR: oauth.ACRPhishingResistant, MaxAge: storage.Age(time.Minute)},
	{Name: "admin", ACR: oauth.ACRMultiFactor, Implies: []string{"pay"}},
	{Name: "all", Implies: []string{"admin", "delete"}},
}}

// AS-238
func TestAuthenticationFor(t *testing.T) {
	const mfa, phr = oauth.ACRMultiFactor, oauth.ACRPhishingResistant
	for scopes, want := range map[string]Authentication{
		"":            {},
		"mcp":         {},
		"mcp pay":     {MaxAge: 5 * time.Minute},
		"admin":       {ACR: mfa, MaxAge: 5 * time.Minute}, // including implied scopes
		"admin all":   {ACR: phr, MaxAge: time.Minute},
		"pay delete":  {ACR: phr, MaxAge: time.Minute},
		"unknown mcp": {},
	} {
		if got := AuthenticationFor(guarded, oauth.ParseScopes(scopes)); got != want {
			t.Errorf("%q: got %+v, want %+v", scopes, got, want)
		}
	}
}

// AS-238: the scopes that a proof allows end at their max_age; offline_access never does.
func TestProved(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		proof Proof
		after time.Duration
		want  string
	}{
		{Proof{oauth.ACRPhishingResistant, at}, time.Minute, "mcp pay delete admin offline_access"},
		{Proof{oauth.ACRPhishingResistant, at}, time.Minute + time.Second, "mcp pay admin offline_access"},
		{Proof{oauth.ACRMultiFactor, at}, 0, "mcp pay admin offline_access"},
		{Proof{"", at}, 0, "mcp pay offline_access"},
		{Proof{oauth.ACRPhishingResistant, at}, time.Hour, "mcp offline_access"},
		{Proof{oauth.ACRPhishingResistant, time.Time{}}, 0, "mcp offline_access"},
	} {
		asked := oauth.ParseScopes("mcp pay delete admin offline_access")
		if got := Proved(guarded, asked, tt.proof, at.Add(tt.after)).String(); got != tt.want {
			t.Errorf("%+v after %v: got %q, want %q", tt.proof, tt.after, got, tt.want)
		}
	}
}

// AS-238: a program has no user who could authenticate.
func TestProgramsGetNothingThatDemandsAProof(t *testing.T) {
	all := ResourceScopes(guarded)
	got, err := Machine(guarded, all, nil)
	if err != nil || got.String() != "mcp" {
		t.Errorf("got %v, %v", got, err)
	}
	var refused *oauth.Error
	if _, err = Machine(guarded, all, oauth.Scopes{"all"}); !errors.As(err, &refused) ||
		refused.Code != oauth.InvalidScope {
		t.Errorf("one that includes such a scope: got %v", err)
	}
}

func TestFaultsOfDemands(t *testing.T) {
	for _, s := range []storage.ScopeText{
		{Name: "a", ACR: "gold"}, {Name: "a", MaxAge: storage.Age(time.Second)}, {Name: "a", MaxAge: -1},
	} {
		if FaultOf(storage.Resource{Scopes: []storage.ScopeText{s}}, s) == "" {
			t.Errorf("%+v has no fault", s)
		}
	}
}
