// Command report runs go test with its arguments and shows the output as it comes. At the end it lists
// the slowest packages and tests, the skipped tests, and for each failed test a command that repeats it.
// It exits with the code of go test.
//
// With -long as its first argument it runs only the second lane: the tests that call lane.Long. As
// "report run PROGRAM" it runs a test program for go test -exec and measures it.
package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "run" {
		os.Exit(measure(os.Args[2:]))
	}
	database, err := startDatabase()
	if err := errors.Join(err, link()); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	code := run(os.Args[1:], "", filepath.Join("test", "out"), os.Stdout, os.Stderr)
	runtime.KeepAlive(database)
	os.Exit(code)
}

// link builds mcp-authd before the tests and passes them its checksum. Without the checksum Go would
// use cached results of another build.
func link() error {
	path, err := program.Make(".", "./cmd/mcp-authd")
	if err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.Setenv(program.Sum, fmt.Sprintf("%x", sha256.Sum256(b)))
}

// startDatabase starts one PostgreSQL for all tests of the run. If that fails, tests start their own or
// are skipped.
func startDatabase() (*pgtest.Server, error) {
	const given = "TEST_DATABASE_URL"
	if os.Getenv(given) != "" {
		return nil, nil
	}
	database, err := pgtest.StartForRun()
	if err != nil {
		fmt.Fprintln(os.Stderr, "report: no PostgreSQL for this run:", err)
		return nil, nil
	}
	return database, os.Setenv(given, database.URL())
}

// run runs go test in a directory; "" is the current directory. It keeps the output of failed tests in
// another, which it empties first.
func run(args []string, dir, kept string, out, errs io.Writer) int {
	r, err := newReport(out, dir, kept)
	if err == nil {
		defer os.RemoveAll(r.spent)
		args, err = arguments(args, dir)
	}
	if err != nil {
		fmt.Fprintln(errs, "report:", err)
		return 1
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, errs
	cmd.Env = append(os.Environ(), spentIn+"="+r.spent)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(errs, "report:", err)
		return 1
	}
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
	r.end()
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
