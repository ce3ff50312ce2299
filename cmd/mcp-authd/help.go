package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of help in columns.
const helpWidth = 100

// remoteFlag annotates the flags of a command for a server elsewhere.
const remoteFlag = "mcp-authd remote"

// valueNames lists, for each name of a value, the flags that have it in help. A flag of one command
// ("client add --grant") takes precedence over a flag of all commands.
var valueNames = map[string][]string{
	"ADDRESS":       {"address", "mail"},
	"APPLICATION":   {"application"},
	"AUDIENCE":      {"audience-alias", "event-audience"},
	"CIDR":          {"network"},
	"CLAIM=PATTERN": {"match-glob"},
	"CLAIM=VALUE":   {"trust add --match"},
	"CLIENT":        {"client"},
	"CLIENT[=ID]":   {"trust issue add --client"},
	"DIGEST":        {"digest"},
	"DIR":           {"data", "dir"},
	"DOMAIN":        {"domain", "email-domain"},
	"DURATION":      {"max-age", "max-ttl", "timeout", "ttl"},
	"EVENT":         {"event"},
	"EXPRESSION":    {"match-expression"},
	"FILE": {
		"ca-file", "checkpoint", "client-secret-file", "config", "from-log", "jwks", "jwks-file", "token-file",
	},
	"FORMAT":             {"format"},
	"HEADER":             {"header"},
	"HOST:PORT":          {"listen"},
	"ID":                 {"client-id", "grant", "id", "provider"},
	"ISSUER":             {"issuer", "saml-issuer"},
	"JSON":               {"args-json"},
	"KEY":                {"key"},
	"KIND":               {"kind"},
	"METHOD":             {"auth-method"},
	"MODE":               {"dpop"},
	"MODE[,PATH]...":     {"sandbox"},
	"N":                  {"limit"},
	"NAME":               {"account", "group", "name", "pass-env", "provider-group", "tenant"},
	"NAME=DESCRIPTION":   {"protect --scope", "resource add --scope", "resource set --scope"},
	"NAME=VALUE":         {"arg", "set"},
	"NAME[=VALUE]":       {"env"},
	"PATH":               {"path"},
	"PRESET":             {"preset"},
	"REFERENCE":          {"reference"},
	"ROLE":               {"role"},
	"SCOPE":              {"dangerous", "default", "every-call", "required", "scope"},
	"SCOPE=ACCESS":       {"access"},
	"SCOPE=ACR":          {"acr"},
	"SCOPE=DURATION":     {"resource add --max-age", "resource set --max-age"},
	"SCOPE[,SCOPE]...":   {"scopes"},
	"STORE":              {"store"},
	"TEMPLATE":           {"subject"},
	"TEXT":               {"description", "match"},
	"TIME":               {"since", "until"},
	"TOOL":               {"call", "deny-tool", "direct-tool"},
	"TOOL[,TOOL]...":     {"approve"},
	"TOOL[=SCOPE,...]":   {"tool"},
	"TYPE":               {"client add --grant"},
	"URI":                {"redirect-uri"},
	"URL":                {"alias", "jwks-uri", "jwks-url", "remote", "resource", "upstream", "url"},
	"USER":               {"person", "run-as", "user"},
	optional("PLATFORM"): {"workload"},
}

// optional returns the name of a value that a flag may go without.
func optional(name string) string { return "[=" + name + "]" }

// valueName returns the name of a flag's value in help, or "" for a switch.
func valueName(c *cobra.Command, f *pflag.Flag) string {
	if f.NoOptDefVal == "true" {
		return ""
	}
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	for _, flag := range []string{path + " --" + f.Name, f.Name} {
		for name, flags := range valueNames {
			if slices.Contains(flags, flag) {
				return name
			}
		}
	}
	return f.Value.Type()
}

// flagText is the help of a flag.
type flagText struct{ short, name, value, usage string }

// flagTexts returns the help of the flags of a command, and of its flags for a remote server.
func flagTexts(c *cobra.Command) (own, remote []flagText) {
	c.InitDefaultHelpFlag()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		t := flagText{short: f.Shorthand, name: f.Name, value: valueName(c, f), usage: f.Usage + defaultText(f)}
		switch {
		case f.Hidden:
			return
		case f.Name == "help":
			t.usage = "show this help"
		case f.Name == "version":
			t.usage = "print the version"
		case f.Annotations[remoteFlag] != nil:
			remote = append(remote, t)
			return
		}
		own = append(own, t)
	})
	slices.SortStableFunc(remote, func(a, b flagText) int { // --remote leads to the others
		return cmp.Compare(b.value, a.value)
	})
	return own, remote
}

// defaultText returns the default of a flag, unless it is empty or its usage describes it.
func defaultText(f *pflag.Flag) string {
	value := strings.Trim(f.DefValue, "[]")
	if f.NoOptDefVal == "true" || slices.Contains([]string{"", "0", "0s"}, value) {
		return ""
	}
	if short, ok := strings.CutSuffix(value, "m0s"); ok {
		value = short + "m"
	}
	return " (default: " + value + ")"
}

// names returns the flag with its short form.
func (f flagText) names() string {
	if f.short != "" {
		return "-" + f.short + ", --" + f.name
	}
	return "--" + f.name
}

// separator is the text between a flag and its value.
func (f flagText) separator() string {
	if f.value == "" || strings.HasPrefix(f.value, "[=") {
		return ""
	}
	return " "
}

// setHelp sets the form of help for a command and the commands below it.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		fmt.Fprintf(c.OutOrStdout(), "%s\n%s", wrapped(cmp.Or(c.Long, c.Short+".")), usageText(c))
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := io.WriteString(c.OutOrStderr(), usageText(c))
		return err
	})
}

// usageText returns the help of a command after its description.
func usageText(c *cobra.Command) string {
	var b strings.Builder
	groups, subs := c.HasAvailableSubCommands(), [][2]string{}
	b.WriteString("Usage:\n")
	if !groups || c.Example != "" { // a command that only holds others has no example
		fmt.Fprintf(&b, "  %s\n", c.UseLine())
	}
	if groups {
		fmt.Fprintf(&b, "  %s COMMAND\n", c.CommandPath())
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			subs = append(subs, [2]string{"  " + sub.Name(), sub.Short})
		}
	}
	own, remote := flagTexts(c)
	writeColumns(&b, "Commands", subs)
	writeColumns(&b, "Flags", flagColumns(own))
	writeColumns(&b, "Flags for a remote server", flagColumns(remote))
	if groups {
		fmt.Fprintf(&b, "\nFor the help of a command: %s COMMAND --help\n", c.CommandPath())
	}
	return b.String()
}

func flagColumns(flags []flagText) (rows [][2]string) {
	for _, f := range flags {
		indent := "      "
		if f.short != "" {
			indent = "  "
		}
		rows = append(rows, [2]string{indent + f.names() + f.separator() + f.value, f.usage})
	}
	return rows
}

// writeColumns writes two columns with a heading, or nothing for no rows.
func writeColumns(b *strings.Builder, heading string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row[0]))
	}
	fmt.Fprintf(b, "\n%s:\n", heading)
	for _, row := range rows {
		fmt.Fprintf(b, "%-*s   %s\n", widest, row[0], fill(row[1], widest+3))
	}
}

// wrapped breaks the paragraphs of a text at the width of help. Indented paragraphs stay as they are.
func wrapped(text string) string {
	parts := strings.Split(strings.Trim(text, "\n"), "\n\n")
	for i, part := range parts {
		if !strings.HasPrefix(part, " ") && !strings.HasPrefix(part, "\t") {
			parts[i] = fill(part, 0)
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// fill breaks a text at the width of help. The first line begins after the indent, and the others
// begin with it.
func fill(text string, indent int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case i > 0 && column+1+length > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}
