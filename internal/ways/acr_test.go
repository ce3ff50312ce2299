package ways

import (
	"slices"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestACR: AS-238: it checks the claims about authentication in tokens.
func TestACR(t *testing.T) {
	const mfa, phr = oauth.ACRMultiFactor, oauth.ACRPhishingResistant
	for _, tt := range []struct {
		methods []string
		acr     string
		amr     []string
	}{
		{nil, "", nil},
		{[]string{ByPassword}, "", []string{"pwd"}},
		{[]string{ByProvider}, "", []string{"fed"}},
		{[]string{ByPassword, ByApp}, mfa, []string{"mfa", "otp", "pwd"}},
		{[]string{ByProvider, ByApp}, mfa, []string{"fed", "mfa", "otp"}},
		{[]string{ByPasskey}, phr, []string{"mfa", "pop", "user"}},
		{[]string{ByPasskey, ByOtherDevice}, mfa, []string{"device", "mfa", "pop", "user"}},
		{[]string{ByRecovery, ByApp}, "", []string{"otp", "recovery"}},
		{[]string{ByPassword, ByRecovery}, "", []string{"pwd", "recovery"}},
		{[]string{ByLink}, "", []string{"link"}},
		{[]string{ByApp}, "", []string{"otp"}},
	} {
		if got := ACR(tt.methods); got != tt.acr {
			t.Errorf("%v: got the class %q, want %q", tt.methods, got, tt.acr)
		}
		if got := AMR(tt.methods); !slices.Equal(got, tt.amr) {
			t.Errorf("%v: got %v, want %v", tt.methods, got, tt.amr)
		}
	}
	before := []string{ByPasskey, ByOtherDevice}
	if got := With(before, ByPasskey); ACR(got) != phr || len(before) != 2 {
		t.Errorf("a passkey of this browser, after another device let it in: %v", got)
	}
}
