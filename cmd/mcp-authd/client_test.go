package main

import (
	"errors"
	"strings"
	"testing"
)

// full is an output that fails, such as a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestALostSecretIsNoSuccess checks that the command fails if a secret that is shown once could not
// be printed.
func TestALostSecretIsNoSuccess(t *testing.T) {
	dir := t.TempDir()
	command(t, t.Context(), nil, exitOK, "user", "add", "alice", "--password-stdin", "--data", dir)
	var errs strings.Builder
	code := run(t.Context(),
		[]string{"client", "add", "--name", "Robot", "--grant", "client_credentials", "--data", dir},
		std{in: strings.NewReader(""), out: full{}, err: &errs, environ: []string{"HOME=" + t.TempDir()}})
	if code != exitFailure || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
