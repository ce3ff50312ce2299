package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// lastFree is the last commit whose message may have any form.
	lastFree = "a4b7cc43de7380ad34d7e0232bc67e4ab4f3671b"
	// subjectColumns is the width of a subject in the lists of Git and of code hosts.
	subjectColumns = 72
)

var (
	// subject matches the packages or other parts that a commit changes, and the first word after them.
	subject = regexp.MustCompile(`^[\w./*-]+(?:, [\w./*-]+)*: ([a-z][a-z-]*)`)
	// reported matches verbs that report a change. "pass", "need" and "bring" are not among them.
	reported = regexp.MustCompile(`(?:[^su]s|[^e]ed|.[^r]ing)$`)
	// noVerb lists words that begin a description instead of an instruction.
	noVerb = []string{"a", "all", "an", "each", "every", "it", "no", "not", "that", "the", "this", "what"}
)

// TestCommitSubjects checks the subject of each commit since the rule: "package: verb in the
// imperative". It is skipped where the history is missing, as in an archive or a shallow clone.
func TestCommitSubjects(t *testing.T) {
	const top = "../.."
	// The log of Git changes with each commit, so the result of this test is not cached after one.
	_, _ = os.ReadFile(filepath.Join(top, ".git/logs/HEAD")) // absent in a bare checkout
	if err := exec.Command("git", "-C", top, "merge-base", "--is-ancestor", lastFree, "HEAD").Run(); err != nil {
		t.Skipf("the history since %s is missing: %v", lastFree[:8], err)
	}
	out, err := exec.Command("git", "-C", top, "log", "--no-merges", "--format=%h %s", lastFree+"..HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		hash, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if fault := subjectFault(text); fault != "" {
			t.Errorf("commit %s: %q: %s", hash, text, fault)
		}
	}
}

// subjectFault returns the fault of a commit's subject, or "".
func subjectFault(text string) string {
	m := subject.FindStringSubmatch(text)
	switch {
	case strings.HasPrefix(text, `Revert "`):
		return ""
	case m == nil:
		return `write "package: verb", such as "gateway: close idle sessions"`
	case utf8.RuneCountInString(text) > subjectColumns:
		return "it has more than 72 characters: move the reasons to the body"
	case strings.HasSuffix(text, "."):
		return "it ends with a period"
	case reported.MatchString(m[1]) || slices.Contains(noVerb, m[1]):
		return `begin with a verb in the imperative, such as "close", not "closes", "closed" or "a session closes"`
	}
	return ""
}

func TestSubjectFault(t *testing.T) {
	for text, want := range map[string]string{
		"gateway: close idle sessions":                     "",
		"storage/postgres, cmd: pass errors":               "",
		"README: name the versions":                        "",
		"e2e: need less time":                              "",
		"docs: bring the table up to date":                 "",
		"authserver: process late requests":                "",
		`Revert "gateway: close idle sessions"`:            "",
		"close idle sessions":                              "write",
		"gateway: Close idle sessions":                     "write",
		"a long name: close idle sessions":                 "write",
		"gateway: close idle sessions.":                    "period",
		"gateway: " + strings.Repeat("close ", 11):         "72",
		"gateway: closes idle sessions":                    "imperative",
		"gateway: closed idle sessions":                    "imperative",
		"gateway: closing idle sessions":                   "imperative",
		"gateway: a session closes when nobody waits for ": "imperative",
	} {
		if got := subjectFault(text); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
