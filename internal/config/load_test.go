package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// DL-04: a file that is no configuration, such as a backup or a device without end, is not read whole.
func TestLongFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.yaml")
	issuer := "issuer: https://auth.example.com\n"
	if err := os.WriteFile(file, []byte(issuer+strings.Repeat("#", maxFile-len(issuer))), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := Load(Source{File: file}); err != nil || l.Issuer != "https://auth.example.com" {
		t.Errorf("1 MiB: got %v", err)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{file}
	if _, err := os.Stat("/dev/zero"); err == nil {
		files = append(files, "/dev/zero")
	}
	for _, file := range files {
		_, err := Load(Source{File: file})
		if err == nil || !strings.Contains(err.Error(), file+" is longer than 1 MiB") {
			t.Errorf("%s: got %v, want that it is too long", file, err)
		}
	}
}

// DL-04: networks that hold every address are told apart from those of proxies.
func TestTrustsAll(t *testing.T) {
	c := Default(func(string) string { return "" })
	c.TrustedProxies = []string{"10.0.0.0/8", "0.0.0.0/0", "127.0.0.1", "::/0"}
	if got := strings.Join(c.TrustsAll(), " "); got != "0.0.0.0/0 ::/0" {
		t.Errorf("got %q, want both that hold all", got)
	}
}
