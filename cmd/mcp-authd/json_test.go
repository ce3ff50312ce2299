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

// scriptJSON implements json PATH PATTERN: the last output must be one JSON value whose part at
// PATH matches the pattern. PATH is such as 0.scopes.1, or "." for everything. Text is matched
// directly, other values as JSON. json PATH > VAR stores the part.
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

// readElsewhere lists commands whose JSON other tests parse, because they need a user at a browser
// or do not end.
var readElsewhere = map[string]string{
	"mcp-authd demo":    "internal/testkit/demotest",
	"mcp-authd protect": "test/e2e",
	"mcp-authd login":   "test/e2e",

	"mcp-authd token":        "test/e2e",
	"mcp-authd token logout": "test/e2e",

	"mcp-authd mail test":       "internal/admin, with a mail server",
	"mcp-authd attempt watch":   "attempts.txtar, line by line",
	"mcp-authd proposal accept": "internal/admin/api",
}

// TestEveryJSON checks that, for each command with --json, a script parses its output.
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
