package label

import "testing"

func TestVisible(t *testing.T) {
	for name, want := range map[string]string{
		" My  phone ":            "My phone",
		"\u3164\u115F\u2800":     "", // letters without a visible glyph
		"a\u202Eb\u200Bc":        "abc",
		"line\r\nline":           "line line",
		"\x1b[31mred":            "[31mred",
		"Schl\u00fcssel 鍵 مفتاح": "Schl\u00fcssel 鍵 مفتاح",
		"\xff":                   "",
	} {
		if got := Visible(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
