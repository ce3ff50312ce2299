package main

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// commandsOf returns the commands that run operations, by operation name.
func commandsOf() map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Flags().Lookup("remote") != nil && c.Name() != "logout" { // which forgets a sign-in on this machine
			out[strings.TrimPrefix(c.CommandPath(), "mcp-authd ")] = c
		}
	}
	walk(newRootCommand(std{}))
	return out
}

// partsOf lists operations that are part of another operation's command.
var partsOf = map[string]string{
	"grant revoke-many":   "grant revoke",
	"grant revoke-helper": "grant revoke",
	"grant end-pause":     "grant resume",
}

// TestEveryOperation checks that each operation has a command of the same name, which another
// server can also run (OB-10).
func TestEveryOperation(t *testing.T) {
	commands := commandsOf()
	for _, v := range admin.All() {
		name := v.Spec().Name
		if of := partsOf[name]; of != "" {
			name = of
		}
		if commands[name] == nil {
			t.Errorf("OB-10: there is no command %q with --remote", name)
		}
	}
	if len(commands) < 60 {
		t.Errorf("found %d commands", len(commands))
	}
}

// withoutJSON lists the commands without output, or with output that is always JSON.
var withoutJSON = map[string]string{
	"mcp-authd serve":         "it runs until it is stopped",
	"mcp-authd help":          "it is for people",
	"mcp-authd man":           "it writes files",
	"mcp-authd audit export":  "it writes the log in the format that --format names, lines of JSON if none",
	"mcp-authd config schema": "it prints a schema, which is JSON",
}

// TestJSONEverywhere checks that each command can print JSON, and that each operation has an output
// (OB-10).
func TestJSONEverywhere(t *testing.T) {
	found := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		has := c.Flags().Lookup("json") != nil
		if c.HasSubCommands() && !has { // a group
			return
		}
		found++
		if why := withoutJSON[c.CommandPath()]; has == (why != "") {
			t.Errorf("OB-10: %s has --json: %v; why it has not: %q", c.CommandPath(), has, why)
		}
	}
	walk(newRootCommand(std{}))
	if found < 80 {
		t.Errorf("found %d commands", found)
	}
	for _, v := range admin.All() {
		if v.Output() == reflect.TypeFor[admin.None]() {
			t.Errorf("OB-10: %s answers nothing", v.Spec().Name)
		}
	}
}

// unasked lists commands that take something away without asking.
var unasked = map[string]string{
	"group remove":      "group add puts the accounts back",
	"user passwd":       "the new password is typed twice",
	"user set-role":     "it is set back by the same command",
	"user sessions end": "the person signs in again",
}

// TestYesEverywhere checks that each command that takes something away asks first, and that --yes
// answers (OB-10).
func TestYesEverywhere(t *testing.T) {
	takes := regexp.MustCompile(` (disable|delete|remove|revoke|revoke-helper|rotate-secret|withdraw|end|unlink|passwd|set-role)$`)
	asks := 0
	for name, c := range commandsOf() {
		has := c.Flags().Lookup("yes") != nil
		if has {
			asks++
		}
		if takes.MatchString(name) && has == (unasked[name] != "") {
			t.Errorf("OB-10: %s has --yes: %v; why it does not ask: %q", name, has, unasked[name])
		}
	}
	if asks < 10 {
		t.Errorf("found %d commands with --yes", asks)
	}
}

// TestTextsOfOperations checks that descriptions of operations mention no flags or terminals,
// because all front ends show them.
func TestTextsOfOperations(t *testing.T) {
	words := regexp.MustCompile(`(^|[\s("])--[a-z]|terminal|standard input|[Pp]rints? |exit code|Exits with|stdin|stdout`)
	for _, v := range admin.All() {
		s := v.Spec()
		for _, text := range []string{s.Summary, s.Details} {
			if found := words.FindString(text); found != "" {
				t.Errorf("%s says %q: %s", s.Name, found, text)
			}
		}
		if strings.HasSuffix(s.Summary, ".") || s.Summary == "" {
			t.Errorf("%s: the summary is %q", s.Name, s.Summary)
		}
	}
}
