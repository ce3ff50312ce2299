package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestFailed: an error of the contract does not count as a failure of the store, and the list
// contains each of them.
func TestFailed(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, ErrSpent: false, fmt.Errorf("redeem: %w", ErrNotFound): false, context.Canceled: false,
		context.DeadlineExceeded: true, ErrSchema: true, errors.New("disk full"): true,
	} {
		if got := Failed(err); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{ErrSchema.Error(): true, ErrBusy.Error(): true} // the store is unusable
	for _, answer := range answers {
		known[answer.Error()] = true
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`errors\.New\("(storage: [^"]+)"`).FindAllSubmatch(source, -1) {
			if !known[string(m[1])] {
				t.Errorf("%s: add the error %q to answers of failed.go", file, m[1])
			}
		}
	}
}
