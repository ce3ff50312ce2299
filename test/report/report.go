package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// name is a test of a package, or the package itself if test is empty.
type name struct{ pkg, test string }

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// report reads the events of a run. Like go test, it shows the output of a test only if the test fails.
type report struct {
	out     io.Writer
	root    string // the directory of the module
	kept    string // the directory for the files of failed tests
	spent   string // the directory for the processor times of test programs
	pending map[name][]string
	skipped []string
	left    int // how many tests are in the second lane
	failed  []name
	seeds   map[string]string // of the random order of tests, by package
	took    map[name]time.Duration
}

// newReport returns a report for tests below root that keeps the output of failed tests in kept. It
// deletes the files of earlier runs.
func newReport(out io.Writer, root, kept string) (*report, error) {
	root, err := filepath.Abs(root)
	if err == nil {
		kept, err = filepath.Abs(kept)
	}
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(kept); err != nil {
		return nil, err
	}
	spent, err := os.MkdirTemp("", "report")
	return &report{
		out: out, root: root, kept: kept, spent: spent,
		pending: map[name][]string{}, seeds: map[string]string{}, took: map[name]time.Duration{},
	}, err
}

func (r *report) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(r.out, line) // from the go command, which does not write all errors as JSON
		return
	}
	key := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output(key, e.Output)
	case "pass":
		delete(r.pending, key)
	case "fail":
		r.fail(key)
	case "skip":
		r.skip(key)
	}
	if e.Action == "pass" || e.Action == "fail" {
		r.took[key] = time.Duration(e.Elapsed * float64(time.Second))
	}
}

// seed matches go test's line with the seed of the random order.
var seed = regexp.MustCompile(`^-test\.shuffle (\d+)\n$`)

func (r *report) output(key name, text string) {
	switch s := seed.FindStringSubmatch(text); {
	case s != nil:
		r.seeds[key.pkg] = s[1]
	case key.test != "":
		r.pending[key] = append(r.pending[key], text)
	case text != "PASS\n":
		fmt.Fprint(r.out, text)
	}
}

// fail shows the output of a failed test. For a failed package it shows the tests that did not end.
func (r *report) fail(key name) {
	if key.test != "" {
		r.failed = append(r.failed, key)
		r.show(key)
		return
	}
	for k := range r.pending {
		if k.pkg == key.pkg {
			r.failed = append(r.failed, k)
			r.show(k)
		}
	}
	if !slices.ContainsFunc(r.failed, func(n name) bool { return n.pkg == key.pkg }) {
		r.failed = append(r.failed, key) // it did not build, or failed outside of its tests
	}
}

func (r *report) show(key name) {
	var said strings.Builder
	for _, text := range r.pending[key] {
		if !strings.HasPrefix(text, "=== ") {
			said.WriteString(text)
		}
	}
	fmt.Fprint(r.out, said.String())
	delete(r.pending, key)
	if err := r.keep(key, said.String()); err != nil {
		fmt.Fprintln(r.out, "report:", err)
	}
}

// keep saves the output of a failed test beside its other files (internal/testkit/failure).
func (r *report) keep(key name, said string) error {
	top, _, _ := strings.Cut(key.test, "/")
	dir := filepath.Join(r.kept, filepath.FromSlash(short(key.pkg)), top)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "output.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %s\n%s", key.pkg, key.test, said)
	return err
}

func (r *report) skip(key name) {
	if key.test == "" {
		return // a package without tests
	}
	reason := why(r.pending[key])
	if strings.Contains(reason, lane.Reason) {
		r.left++
	} else {
		r.skipped = append(r.skipped, fmt.Sprintf("%s %s: %s", key.pkg, key.test, reason))
	}
	delete(r.pending, key)
}

// why returns the reason that a skipped test gave.
func why(output []string) string {
	var said []string
	for _, text := range output {
		text = strings.TrimSpace(text)
		if text != "" && !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- ") {
			said = append(said, text)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

// end writes the summary of a run.
func (r *report) end() {
	r.slowest()
	switch {
	case len(r.skipped) > 0:
		fmt.Fprintf(r.out, "\nSkipped (%d):\n  %s\n", len(r.skipped), strings.Join(r.skipped, "\n  "))
	default:
		fmt.Fprintln(r.out, "\nNo test was skipped.")
	}
	if r.left > 0 {
		fmt.Fprintf(r.out, "Left to make test-all: %d tests.\n", r.left)
	}
	if len(r.failed) == 0 {
		return
	}
	fmt.Fprintf(r.out, "\nFailed; what each left is in %s. To repeat:\n", r.kept)
	var commands []string
	for _, f := range r.failed {
		commands = append(commands, r.repeat(f))
	}
	slices.Sort(commands)
	for _, c := range slices.Compact(commands) {
		fmt.Fprintln(r.out, "  "+c)
	}
}

// repeat returns a command that runs a failed test again. If the order was random, the command runs the
// whole package in the same order.
func (r *report) repeat(f name) string {
	pkg := "./" + short(f.pkg)
	if s := r.seeds[f.pkg]; s != "" {
		return fmt.Sprintf("go test -race -count 1 -shuffle %s %s", s, pkg)
	}
	if f.test == "" {
		return "go test -race -count 1 " + pkg
	}
	top, _, _ := strings.Cut(f.test, "/")
	return fmt.Sprintf("go test -race -count 1 -run '^%s$' %s", top, pkg)
}

// short returns the path of a package relative to this module.
func short(pkg string) string { return strings.TrimPrefix(pkg, "github.com/mcp-authd/mcp-authd/") }
