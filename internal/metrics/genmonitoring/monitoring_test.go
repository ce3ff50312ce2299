package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const root = "../../.."

// TestFiles: OB-09: the dashboard, the rules and the tables must match the definitions.
func TestFiles(t *testing.T) {
	all, err := files(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date (%v); run: go generate ./internal/metrics", name, err)
		}
	}
}

// TestRules: OB-09: Prometheus accepts the rules, and each rule fires for its Fires and not for its
// Quiet series.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatal(err)
	case err != nil:
		t.Skip("promtool is not installed (apt-get install prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", testsFile}} {
		c := exec.CommandContext(t.Context(), promtool, args...)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
