package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBrandingIsValidated checks that config validate reports errors in the branding by
// configuration key (PE-13).
func TestBrandingIsValidated(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"logo.gif": "GIF89a", "logo.svg": "<svg/>", "texts/de/signedout.json": `{"titel": "x"}`,
		"good/nl/signedout.json": `{"title": "Afgemeld"}`,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		name     string
		branding Branding
		want     []string
	}{
		{"none", Branding{}, nil},
		{"good", Branding{"Acme", at("logo.svg"), Accent{"#0047ab", "#8ab4f8"}, at("good")}, nil},
		{"bad", Branding{"Acme", at("logo.gif"), Accent{"blue", "#000000"}, at("texts")}, []string{
			"branding.logo: is neither an SVG nor a PNG image", "branding.accent.light: \"blue\" is not a colour",
			"branding.accent.dark: #000000 on the background",
			"branding.texts: text: de/signedout.json: titel is unknown",
		}},
		{"missing", Branding{Logo: at("no.svg")}, []string{"branding.logo: stat "}},
		{"a file for a directory", Branding{Texts: at("logo.svg")}, []string{"branding.texts: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			c := Config{Branding: tt.branding}
			c.validateBranding(func(key, format string, args ...any) {
				got = append(got, key+": "+fmt.Sprintf(format, args...))
			})
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}
