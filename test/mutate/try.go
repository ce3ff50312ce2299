package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// outcome is the result of a change.
type outcome int

const (
	refused  outcome = iota // it does not compile
	noticed                 // a test failed
	survived                // no test failed
)

// testTimeout ends tests that a change has made endless, which counts as noticed.
const testTimeout = 2 * time.Minute

// try runs the tests of a target over a change.
func try(ctx context.Context, t target, c change, work string) (outcome, error) {
	original, replacement, err := c.overlay(work)
	if err != nil {
		return refused, err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return refused, err
	}
	overlay := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return refused, err
	}
	if err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+t.dir).Run(); err != nil {
		return refused, ctx.Err()
	}
	for _, tests := range append([][]string{t.tests}, each(t.behind)...) {
		args := append([]string{
			"test", "-overlay", overlay, "-vet=off", "-failfast", "-short", "-count=1", "-timeout",
			testTimeout.String()}, tests...)
		out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
		var failed *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return refused, ctx.Err()
		case errors.As(err, &failed) && bytes.Contains(out, []byte("[build failed]")):
			return refused, nil
		case errors.As(err, &failed):
			return noticed, nil
		case err != nil:
			return refused, err
		}
	}
	return survived, nil
}

// each returns one list per test.
func each(tests []string) (out [][]string) {
	for _, t := range tests {
		out = append(out, []string{t})
	}
	return out
}
