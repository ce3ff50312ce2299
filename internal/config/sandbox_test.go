package config

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestSandbox checks that sandboxes are parsed correctly, and that invalid ones are refused
// (SP-24).
func TestSandbox(t *testing.T) {
	if runtime.GOOS == "linux" {
		s, err := ParseSandbox("strict,/srv/files,+/var/lib/notes")
		p := s.Policy("/srv/notes")
		if err != nil || p.Network || !slices.Equal(p.Read, []string{"/srv/files", "/srv/notes"}) ||
			!slices.Equal(p.Write, []string{"/var/lib/notes"}) || p.Processes != 64 || p.FileSize != 100<<20 {
			t.Errorf("got %+v %v", p, err)
		}
	}
	if p := (&Sandbox{}).Policy("/srv"); p != nil {
		t.Errorf("no preset: got %+v", p)
	}
	if p := (&Sandbox{Preset: "network", Processes: -1, Memory: 5}).Policy(""); !p.Network || p.Processes != 0 ||
		p.Memory != 5<<20 {
		t.Errorf("got %+v", p)
	}
	for text, want := range map[string]string{
		"loose": "is not one of", "strict,srv": "not an absolute path", "": "name a preset",
		",/srv": "preset is missing",
	} {
		if _, err := ParseSandbox(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	var said []string
	s := Sandbox{Preset: "strict"}
	s.validate(func(key, _ string, _ ...any) { said = append(said, key) }, "sandbox", false)
	if !slices.Contains(said, "sandbox") {
		t.Errorf("a sandbox for a URL: got %q", said)
	}
}
