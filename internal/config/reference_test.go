package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pagetest"
)

const refresh = "go test ./internal/config -run TestReference"

// TestKeysAreExplained checks that each key has a meaning, and each meaning a key (DL-05).
func TestKeysAreExplained(t *testing.T) {
	keys := map[string]bool{}
	for _, k := range Reference() {
		keys[k.Path] = true
		if k.Meaning == "" {
			t.Errorf("DL-05: keys.yaml does not say what %s means", k.Path)
		}
	}
	for path := range allSaid() {
		if !keys[path] {
			t.Errorf("DL-05: keys.yaml explains %s, which does not exist", path)
		}
	}
	if len(keys) < 250 {
		t.Errorf("found %d keys", len(keys))
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(keysFile)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&map[string]said{}); err != nil {
		t.Error(err)
	}
}

// TestValuesAreKnown checks that the default of a key is one of its listed values (DL-05).
func TestValuesAreKnown(t *testing.T) {
	for _, k := range Reference() {
		d := strings.Trim(k.Default, "`")
		if len(k.Values) > 0 && k.Default != "" && strings.HasPrefix(k.Default, "`") && !slices.Contains(k.Values, d) {
			t.Errorf("DL-05: %s is %s by default, and can be %v", k.Path, k.Default, k.Values)
		}
	}
}

// TestReference checks that the pages about keys and variables, and the schema, match the code
// (DL-05).
func TestReference(t *testing.T) {
	pagetest.Is(t, *update, "reference/configuration.md", configurationPage(), refresh)
	pagetest.Is(t, *update, "reference/environment.md", environmentPage(), refresh)
	pagetest.Is(t, *update, "reference/mcp-authd.schema.json", string(newSchemaMaker(t).make()), refresh)
}

func configurationPage() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\n<!-- Made by: " + refresh + " -update -->\n\n")
	b.WriteString(pagetest.Words("This page lists every key of `mcp-authd.yaml`, with its environment variable. For the location of the file " +
		"and for precedence, see [the configuration file and the environment](../operating/configuration.md). For other " +
		"variables, see [environment variables](environment.md). An unknown key is an error that names the nearest one."))
	b.WriteString("\n" + pagetest.Words("For editors there is a [JSON schema](mcp-authd.schema.json); `mcp-authd config "+
		"schema` prints it. An editor with yaml-language-server completes and checks a file that begins with this line:"))
	b.WriteString("\n```yaml\n" +
		"# yaml-language-server: $schema=https://mcp-authd.github.io/mcp-authd/reference/mcp-authd.schema.json\n" +
		"issuer: https://auth.example.com\n```\n\n")
	b.WriteString(pagetest.Words("In the variable of a list item, `N` is its number, from 0. Write a *duration* as " +
		"`90s`, `15m`, `12h` or `30d`. A *secret* is masked wherever it is shown. Its variable with `_FILE` at the " +
		"end names a file that contains it."))
	groups, order := map[string][]Key{}, []string{}
	for _, k := range Reference() {
		g := groupOf(k)
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], k)
	}
	for _, g := range order {
		fmt.Fprintf(&b, "\n## %s\n", g)
		for _, k := range groups[g] {
			if k.Path == g {
				b.WriteString("\n" + pagetest.Words(pagetest.Above(sentence(k.Meaning))))
				continue
			}
			writeKey(&b, k)
		}
	}
	return b.String()
}

func writeKey(b *strings.Builder, k Key) {
	fmt.Fprintf(b, "\n### `%s`\n\n%s", k.Path, pagetest.Words(pagetest.Above(sentence(k.Meaning))))
	facts := []string{"Type: " + k.Type + "."}
	if len(k.Values) > 0 {
		facts = append(facts, "One of `"+strings.Join(k.Values, "`, `")+"`.")
	}
	switch k.Default {
	case "":
	case "required":
		facts = append(facts, "Required.")
	default:
		facts = append(facts, "Without it: "+k.Default+".")
	}
	if k.Environment != "" {
		facts = append(facts, "Variable: `"+k.Environment+"`.")
	}
	b.WriteString("\n" + pagetest.Words(strings.Join(facts, " ")))
}

// sentence adds a capital and a period.
func sentence(s string) string {
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// groupOf returns the heading of a key.
func groupOf(k Key) string {
	for _, long := range []string{"resources[].upstream", "resources[].tools[]"} {
		if k.Path == long || strings.HasPrefix(k.Path, long+".") {
			return long
		}
	}
	first, _, nested := strings.Cut(k.Path, ".")
	if nested || k.Type == group || k.Type == list {
		return first
	}
	return "The server"
}

func environmentPage() string {
	var b strings.Builder
	b.WriteString("# Environment variables\n\n<!-- Made by: " + refresh + " -update -->\n\n")
	b.WriteString(pagetest.Words("The variable of a key is `MCP_AUTHD_` and its path in capitals, with `_` for dots and " +
		"hyphens: [configuration](configuration.md) has each one. Items of lists are numbered from 0 " +
		"(`MCP_AUTHD_RESOURCES_0_URI`); a list of plain values is separated by commas or ends of lines. A variable " +
		"goes before the file, and a flag before both. An unknown variable that begins with `MCP_AUTHD_` is " +
		"an error of `config validate`; `serve` and `doctor` warn of it."))
	b.WriteString("\n## Secrets\n\n")
	b.WriteString(pagetest.Words("Each of these may also be the name of a file with `_FILE` at its end; both at once are an error."))
	b.WriteString("\n| variable | key |\n|---|---|\n")
	for _, k := range Reference() {
		if k.Secret && k.Environment != "" {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", k.Environment, k.Path)
		}
	}
	b.WriteString("\n## For commands\n\n| variable | |\n|---|---|\n")
	for _, v := range forCommands {
		fmt.Fprintf(&b, "| `%s%s` | %s |\n", prefix, v.name, pagetest.Above(v.meaning))
	}
	b.WriteString("\n## Of others\n\n")
	b.WriteString(pagetest.Words("Traces read the variables of OpenTelemetry (`OTEL_EXPORTER_OTLP_...`) where the " +
		"configuration says nothing."))
	b.WriteString("\n| variable | |\n|---|---|\n")
	for _, v := range elsewhere {
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.name, pagetest.Above(v.meaning))
	}
	return b.String()
}
