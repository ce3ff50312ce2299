// Command report runs go test with its arguments, shows what go test shows, as it comes, and
// ends with a list of the tests that were skipped, and why. It ends with go test's code.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], "", os.Stdout, os.Stderr)) }

// run runs go test in a directory.
func run(args []string, dir string, out, errs io.Writer) int {
	cmd := exec.Command("go", arguments(args, dir)...)
	cmd.Dir, cmd.Stderr = dir, errs
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(errs, "report:", err)
		return 1
	}
	r := report{out: out, pending: map[name][]string{}}
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.line(line)
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	r.list()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(errs, "report:", err)
		return 1
	}
	return 0
}

// name is a test of a package; of "" is what the package itself says.
type name struct{ pkg, test string }

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// report holds what tests say back until they have failed: of others go test shows nothing.
type report struct {
	out     io.Writer
	pending map[name][]string
	skipped []string
}

func (r *report) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(r.out, line) // go itself, which knows no JSON where it cannot build
		return
	}
	key := name{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "output" && e.Test != "":
		r.pending[key] = append(r.pending[key], e.Output)
	case e.Action == "output" && e.Output != "PASS\n":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "fail" && e.Test != "":
		r.show(key)
	case e.Action == "fail": // with tests that never ended
		for k := range r.pending {
			if k.pkg == e.Package {
				r.show(k)
			}
		}
	case e.Action == "skip" && e.Test != "":
		r.skipped = append(r.skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, why(r.pending[key])))
		delete(r.pending, key)
	case e.Action == "pass":
		delete(r.pending, key)
	}
}

func (r *report) show(key name) {
	for _, text := range r.pending[key] {
		if !strings.HasPrefix(text, "=== ") {
			fmt.Fprint(r.out, text)
		}
	}
	delete(r.pending, key)
}

// why is what a test said when it was skipped.
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

func (r *report) list() {
	if len(r.skipped) == 0 {
		fmt.Fprintln(r.out, "\nNo test was skipped.")
		return
	}
	fmt.Fprintf(r.out, "\nSkipped (%d):\n", len(r.skipped))
	for _, s := range r.skipped {
		fmt.Fprintln(r.out, "  "+s)
	}
}
