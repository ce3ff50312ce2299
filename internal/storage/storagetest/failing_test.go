package storagetest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// TestVerbsAreComplete fails if Failing or package timed lacks a verb of storage.Store.
func TestVerbsAreComplete(t *testing.T) {
	for file, args := range map[string][]string{"failing_verbs.go": nil, "../timed/verbs.go": {"timed"}} {
		want, err := exec.CommandContext(t.Context(), "go", append([]string{"run", "./genverbs"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date (%v); run: go generate ./internal/storage/storagetest", file, err)
		}
	}
}
