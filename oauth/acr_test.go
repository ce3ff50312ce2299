package oauth

import "testing"

// AS-238
func TestACRs(t *testing.T) {
	for _, tt := range []struct {
		held, wanted string
		want         bool
	}{
		{"", "", true},
		{"", ACRMultiFactor, false},
		{ACRMultiFactor, "", true},
		{ACRMultiFactor, ACRMultiFactor, true},
		{ACRPhishingResistant, ACRMultiFactor, true},
		{ACRMultiFactor, ACRPhishingResistant, false},
		{"gold", "gold", true},
		{ACRPhishingResistant, "gold", false},
		{"gold", ACRMultiFactor, false},
	} {
		if got := ACRSatisfies(tt.held, tt.wanted); got != tt.want {
			t.Errorf("%q where %q is wanted: %t", tt.held, tt.wanted, got)
		}
	}
	for _, tt := range [][3]string{
		{"", ACRMultiFactor, ACRMultiFactor}, {"", "", ""},
		{ACRPhishingResistant, ACRMultiFactor, ACRPhishingResistant},
	} {
		if a, b := StrongerACR(tt[0], tt[1]), StrongerACR(tt[1], tt[0]); a != tt[2] || b != tt[2] {
			t.Errorf("of %q and %q: %q and %q", tt[0], tt[1], a, b)
		}
	}
}
