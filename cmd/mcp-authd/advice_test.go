package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/config"
)

var (
	adviceCommand = regexp.MustCompile(`mcp-authd((?: (?:--)?[a-z][a-z-]*(?:\.[a-z]+)*| [A-Z][A-Z_]+)+)`)
	adviceKey     = regexp.MustCompile(`\b([a-z_]+(?:\.[a-z_]+)+)\b`)
	advicePage    = regexp.MustCompile(`docs/[a-z/-]+\.md`)
)

// TestAdviceCanBeFollowed checks that each command in an advice exists and accepts its arguments,
// and that each key and page exists.
func TestAdviceCanBeFollowed(t *testing.T) {
	commands, keys := 0, 0
	for _, e := range attempt.Faults() {
		for _, advice := range []string{e.Person, e.Operator, e.Client} {
			for _, m := range adviceCommand.FindAllStringSubmatch(advice, -1) {
				commands++
				takesAdvice(t, e.Fault, strings.Fields(m[1]))
			}
			for _, page := range advicePage.FindAllString(advice, -1) {
				if _, err := os.Stat("../../" + page); err != nil {
					t.Errorf("RU-13: %s names a page that is not there: %v", e.Fault, err)
				}
			}
			text := advicePage.ReplaceAllString(adviceCommand.ReplaceAllString(advice, ""), "")
			for _, m := range adviceKey.FindAllStringSubmatch(text, -1) {
				if keys++; !isKey(t, strings.Split(m[1], ".")) && !isEvent(t, m[1]) {
					t.Errorf("RU-13: %s names %s, which is no key and no audit event", e.Fault, m[1])
				}
			}
		}
	}
	if commands < 10 || keys < 5 {
		t.Errorf("got %d commands and %d keys: the patterns find too little", commands, keys)
	}
}

// takesAdvice parses a command line as the program does, up to running it.
func takesAdvice(t *testing.T, fault attempt.Fault, line []string) {
	t.Helper()
	c, rest, err := newRootCommand(std{}).Find(line)
	if err != nil || !c.Runnable() {
		t.Errorf("RU-13: %s advises mcp-authd %s: no such command (%v)", fault, strings.Join(line, " "), err)
		return
	}
	if slices.Contains(rest, "--help") {
		return
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Errorf("RU-13: %s advises mcp-authd %s: %v", fault, strings.Join(line, " "), err)
		return
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		t.Errorf("RU-13: %s advises mcp-authd %s: %v", fault, strings.Join(line, " "), err)
	}
}

// isKey reports whether the configuration has a key.
func isKey(t *testing.T, path []string) bool {
	t.Helper()
	type node struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
	}
	at := json.RawMessage(config.Schema())
	for _, name := range path {
		var n node
		if err := json.Unmarshal(at, &n); err != nil {
			t.Fatal(err)
		}
		if n.Items != nil {
			if err := json.Unmarshal(n.Items, &n); err != nil {
				t.Fatal(err)
			}
		}
		next, ok := n.Properties[name]
		if !ok {
			return false
		}
		at = next
	}
	return true
}

// isEvent reports whether the manual lists an audit event.
func isEvent(t *testing.T, name string) bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/audit-events.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(page), "| `"+name+"` |")
}
