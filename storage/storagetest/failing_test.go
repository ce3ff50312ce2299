package storagetest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// TestFailingIsComplete fails when a verb of storage.Store is not one that Failing can fail.
func TestFailingIsComplete(t *testing.T) {
	want, err := exec.CommandContext(t.Context(), "go", "run", "./genverbs").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("failing_verbs.go")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("failing_verbs.go is out of date (%v); run: go generate ./storage/storagetest", err)
	}
}
