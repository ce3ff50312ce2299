// Command mutate measures whether the tests can fail. It changes one condition, operator, constant
// or statement of a package at a time and runs the tests of that code. It lists the changes that no
// test noticed.
//
//	go run ./test/mutate [-seed 42] [-sample 12] [-package authserver] [-match REGEXP] [-list]
//
// The sample is drawn with a fixed seed, at most one change per line. A change that does not
// compile does not count. accepted.txt lists harmless survivors, each with a reason. They count
// neither as killed nor as survived. The exit code is 1 if any other change survived.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// target is a package with its tests. Its own tests run first. The others run only for a change
// that its own tests did not notice.
type target struct {
	dir    string
	tests  []string
	behind []string
}

// targets are the packages where every rule needs a test.
var targets = []target{
	{"oauth", []string{"./oauth"}, []string{"./authserver", "./dcr"}},
	{"internal/policy", []string{"./internal/policy"}, []string{"./authserver"}},
	{"authserver/internal/session", []string{"./authserver/internal/session"}, []string{"./authserver"}},
	{"internal/keys", []string{"./internal/keys"}, []string{"./authserver"}},
	{"authserver", []string{"./authserver"}, []string{"./test/faults"}},
	{"authserver/internal/entry", []string{"./authserver"}, []string{"./test/faults"}},
	{"authserver/internal/flow", []string{"./authserver/internal/flow", "./authserver"}, []string{"./test/faults"}},
	{"authserver/internal/grant", []string{"./authserver/internal/grant", "./authserver"}, []string{"./test/faults"}},
	{"dcr", []string{"./dcr"}, []string{"./authserver", "./test/faults"}},
	{"thirdparty", []string{"./thirdparty"}, []string{"./authserver", "./test/faults"}},
	{"mcpresource", []string{"./mcpresource"}, []string{"./mcpresource/gosdk"}},
	{"mcpresource/internal/message", []string{"./mcpresource/internal/message", "./mcpresource"}, nil},
	{"mcpresource/internal/statuslist", []string{"./mcpresource/internal/statuslist", "./mcpresource"}, nil},
	{"internal/bounded", []string{"./internal/bounded"}, []string{"./mcpresource", "./dcr"}},
	{"internal/gateway", []string{"./internal/gateway"}, nil},
	{"internal/users", []string{"./internal/users"}, []string{"./authserver"}},
	{"internal/storage/sqlite", []string{"./internal/storage/sqlite"}, nil},
}

func main() {
	seed := flag.Uint64("seed", 42, "seed of the sample")
	sample := flag.Int("sample", 12, "changes tried in each package")
	only := flag.String("package", "", "one package only")
	match := flag.String("match", "", "only changes whose line of output matches, for instance 'code.go:100:'")
	list := flag.Bool("list", false, "print the sample and try nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	survived, err := run(ctx, sampling{*seed, *sample, *only, *match, *list})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if survived > 0 {
		os.Exit(1)
	}
}

// sampling selects the changes to try.
type sampling struct {
	seed  uint64
	size  int    // per package
	only  string // directory of a package; "" for all
	match string // a regular expression
	list  bool
}

func run(ctx context.Context, s sampling) (survived int, err error) {
	match, err := regexp.Compile(s.match)
	if err != nil {
		return 0, err
	}
	accepted, err := readAccepted("test/mutate/accepted.txt")
	if err != nil {
		return 0, fmt.Errorf("%w (run it from the top of the module)", err)
	}
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	fmt.Printf("%-18s %6s %6s %6s %8s\n", "package", "tried", "killed", "%", "accepted")
	for _, t := range targets {
		if s.only != "" && t.dir != s.only {
			continue
		}
		changes, err := draw(t.dir, rand.New(rand.NewPCG(s.seed, uint64(len(t.dir)))))
		if err != nil {
			return survived, err
		}
		changes = slices.DeleteFunc(changes, func(c change) bool { return !match.MatchString(c.String()) })
		if s.list {
			for _, c := range changes[:min(s.size, len(changes))] {
				fmt.Println(c)
			}
			continue
		}
		n, err := measure(ctx, t, changes, s.size, accepted, work)
		survived += n
		if err != nil {
			return survived, err
		}
	}
	return survived, nil
}

// measure tries changes until sample of them have compiled, and prints the row of a package.
func measure(
	ctx context.Context, t target, changes []change, sample int, accepted map[string]bool, work string,
) (int, error) {
	var tried, killed, known int
	var holes []change
	for _, c := range changes {
		if tried == sample {
			break
		}
		outcome, err := try(ctx, t, c, work)
		if err != nil {
			return len(holes), err
		}
		switch {
		case outcome == refused:
			continue
		case outcome == noticed:
			killed++
		case accepted[c.key()]:
			known++
		default:
			holes = append(holes, c)
		}
		tried++
	}
	fmt.Printf("%-18s %6d %6d %6.0f %8d\n", t.dir, tried, killed, 100*float64(killed)/float64(max(tried-known, 1)),
		known)
	for _, c := range holes {
		fmt.Println("  survived:", c)
	}
	return len(holes), nil
}

// readAccepted reads the accepted survivors. A line is a change as printed, a tab, and the reason.
// Line numbers are ignored.
func readAccepted(name string) (map[string]bool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, ok := strings.Cut(line, "\t")
		if !ok || reason == "" {
			return nil, fmt.Errorf("%s: no reason in %q", name, line)
		}
		out[key] = true
	}
	return out, nil
}

// draw returns the changes of a package's files, one per line, in the order of the sample.
func draw(dir string, r *rand.Rand) ([]change, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []change
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || filepath.Base(name) == "doc.go" {
			continue
		}
		found, err := changesOf(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(c change) bool {
		at := fmt.Sprint(c.file, c.line)
		defer func() { seen[at] = true }()
		return seen[at]
	}), nil
}
