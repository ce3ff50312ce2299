package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// json PATH PATTERN: what the last command printed is one JSON value, in which what is at PATH,
// such as 0.scopes.1 ("." is all of it), matches the pattern. Text matches as it is, anything else
// as JSON. json PATH > VAR keeps it.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	var at any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &at); err != nil {
		ts.Fatalf("it is not JSON: %v", err)
	}
	found, err := follow(at, args[0])
	ts.Check(err)
	if args[1] == ">" {
		ts.Setenv(args[2], found)
		return
	}
	if regexp.MustCompile(`^(?:`+args[1]+`)$`).MatchString(found) == neg {
		ts.Fatalf("%s is %s", args[0], found)
	}
}

func follow(at any, path string) (string, error) {
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		switch v := at.(type) {
		case map[string]any:
			there := false
			if at, there = v[step]; !there {
				return "", fmt.Errorf("there is no %s in %v", step, v)
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return "", fmt.Errorf("there is no %s in %v", step, v)
			}
			at = v[i]
		default:
			return "", fmt.Errorf("%v has no %s", at, step)
		}
	}
	if s, ok := at.(string); ok {
		return s, nil
	}
	b, err := json.Marshal(at)
	return string(b), err
}

// readElsewhere are commands whose JSON other tests parse, since it takes a person at a browser, or
// does not end.
var readElsewhere = map[string]string{
	"mcp-authd demo":    "internal/testkit/demotest",
	"mcp-authd protect": "test/e2e",
	"mcp-authd login":   "test/e2e",

	"mcp-authd mail test":       "internal/admin, with a mail server",
	"mcp-authd attempt watch":   "attempts.txtar, line by line",
	"mcp-authd proposal accept": "internal/admin/api",
}

// TestEveryJSON: each command with --json has a script that parses what it prints.
func TestEveryJSON(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var scripts strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(b)
	}
	found := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Flags().Lookup("json") == nil || readElsewhere[c.CommandPath()] != "" {
			return
		}
		found++
		parsed := regexp.MustCompile(`(?m)^!? ?exec ` + c.CommandPath() + `\b.* --json.*\n(?:stdin .*\n)?json `)
		if !parsed.MatchString(scripts.String()) {
			t.Errorf("no script parses what %s --json prints", c.CommandPath())
		}
	}
	walk(newRootCommand(std{}))
	if found < 20 {
		t.Errorf("found %d commands with --json", found)
	}
}
