// Command compare runs the benchmarks of an earlier commit and of the working tree in turns, and
// prints the ratio of each figure with its spread. On a machine that also does other work, only
// figures of the same run can be compared.
//
//	go run ./bench/compare -base COMMIT [-rounds 5] [-bench REGEXP] [-time 300ms] [PACKAGE...]
//
// Or: make bench-compare BASE=COMMIT. A ratio below 1 is an improvement. A line is marked if all
// its rounds lie on the same side of 1 and the median differs by 5 % or more.
package main

import (
	"archive/tar"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

// packages lists the packages of `make bench`.
var packages = []string{
	"bench", "internal/keys", "mcpresource", "mcpresource/gosdk", "dcr",
	"internal/storage/sqlite", "internal/storage/postgres",
}

type options struct {
	base     string
	rounds   int
	match    string
	time     time.Duration
	packages []string
}

func main() {
	var o options
	flag.StringVar(&o.base, "base", "", "commit to compare with")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, each of which runs both")
	flag.StringVar(&o.match, "bench", ".", "regular expression of the benchmarks")
	flag.DurationVar(&o.time, "time", 300*time.Millisecond, "time for each benchmark")
	flag.Parse()
	if o.packages = flag.Args(); len(o.packages) == 0 {
		o.packages = packages
	}
	if o.base == "" || o.rounds < 1 {
		fmt.Fprintln(os.Stderr, "compare: name the commit to compare with: make bench-compare BASE=COMMIT")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	work, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	before := tree{dir: filepath.Join(work, "base"), out: filepath.Join(work, "base.bin")}
	after := tree{dir: ".", out: filepath.Join(work, "now.bin")}
	if err := checkOut(ctx, o.base, before.dir); err != nil {
		return err
	}
	for _, t := range []*tree{&before, &after} {
		if err := t.build(ctx, o.packages); err != nil {
			return err
		}
	}
	for i := range o.rounds {
		// The order changes from round to round, so that neither always runs on a warm machine.
		turns := []*tree{&before, &after}
		if i%2 == 1 {
			turns[0], turns[1] = turns[1], turns[0]
		}
		for _, t := range turns {
			if err := t.measure(ctx, o); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "compare: round %d of %d\n", i+1, o.rounds)
	}
	report(out, before.rounds, after.rounds)
	return nil
}

// tree is a source tree with the benchmarks that were built from it.
type tree struct {
	dir, out string
	programs []program
	rounds   []figures
}

// program is the test binary of a package. It runs in the package's directory, as with go test.
type program struct{ pkg, path string }

func (t *tree) build(ctx context.Context, pkgs []string) error {
	if err := os.MkdirAll(t.out, 0o700); err != nil {
		return err
	}
	for i, pkg := range pkgs {
		if _, err := os.Stat(filepath.Join(t.dir, pkg)); errors.Is(err, os.ErrNotExist) {
			continue // only one of the two trees has the package
		}
		path, err := filepath.Abs(filepath.Join(t.out, fmt.Sprint(i, ".test")))
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", path, "./"+pkg)
		cmd.Dir = t.dir
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s does not build in %s: %w\n%s", pkg, t.dir, err, text)
		}
		if _, err := os.Stat(path); err == nil { // a package without tests has no program
			t.programs = append(t.programs, program{pkg, path})
		}
	}
	return nil
}

// measure runs every benchmark once.
func (t *tree) measure(ctx context.Context, o options) error {
	round := figures{}
	for _, p := range t.programs {
		cmd := exec.CommandContext(ctx, p.path, "-test.run=^$", "-test.benchmem",
			"-test.bench="+o.match, "-test.benchtime="+o.time.String())
		cmd.Dir = filepath.Join(t.dir, p.pkg)
		text, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("benchmarks of %s in %s: %w\n%s", p.pkg, t.dir, err, text)
		}
		round.read(p.pkg, string(text))
	}
	t.rounds = append(t.rounds, round)
	return nil
}

// checkOut writes the files of a commit to dir, without changing the repository.
func checkOut(ctx context.Context, commit, dir string) error {
	cmd := exec.CommandContext(ctx, "git", "archive", "--format=tar", commit)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = unpack(pipe, dir)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the commit %q cannot be read: %w", commit, err)
	}
	return err
}

func unpack(from io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag == tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(h.Name), 0o700)
		case h.Typeflag == tar.TypeReg:
			err = write(root, filepath.Clean(h.Name), archive, h.FileInfo().Mode().Perm())
		}
		if err != nil {
			return err
		}
	}
}

func write(root *os.Root, name string, from io.Reader, mode os.FileMode) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
