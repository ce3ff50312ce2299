package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctorOnADamagedFile checks that a damaged file is not also reported as reachable (OP-07).
func TestDoctorOnADamagedFile(t *testing.T) {
	dir, s := grantedInstallation(t, 2000, "hosted")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "mcp-authd.db")
	b, err := os.ReadFile(file)
	if err == nil {
		copy(b[len(b)/2&^4095:], bytes.Repeat([]byte{0xaa}, 64<<10))
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, _ := command(t, t.Context(), nil, exitFailure, "doctor", "--data", dir)
	if strings.Contains(out, "✓ database") || !strings.Contains(out, "the file is damaged") {
		t.Errorf("got\n%s", out)
	}
}
