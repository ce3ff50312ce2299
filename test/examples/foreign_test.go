package examples

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// ofClient matches the mark of a block with the configuration of another program:
//
//	<!-- client: cursor -->
var ofClient = regexp.MustCompile(`^<!-- client: (\S+) -->$`)

// server is an MCP server in a client's configuration. Each client supports some of these members,
// perhaps under other names.
type server struct {
	Type      string   `json:"type,omitempty"       yaml:"type"`
	URL       string   `json:"url,omitempty"        yaml:"url"      toml:"url"`
	HTTPURL   string   `json:"httpUrl,omitempty"    yaml:"-"        toml:"-"`
	ServerURL string   `json:"serverUrl,omitempty"  yaml:"-"        toml:"-"`
	Command   string   `json:"command,omitempty"    yaml:"-"        toml:"-"`
	Args      []string `json:"args,omitempty"       yaml:"-"        toml:"-"`
	Auth      *struct {
		ClientID     string   `json:"CLIENT_ID"`
		ClientSecret string   `json:"CLIENT_SECRET,omitempty"`
		Scopes       []string `json:"scopes,omitempty"`
	} `json:"auth,omitempty" yaml:"-" toml:"-"`
	OAuth *struct {
		ClientID string `json:"clientId" yaml:"client_id"`
		Secret   string `json:"-"        yaml:"client_secret"`
	} `json:"oauth,omitempty" yaml:"oauth" toml:"-"`
}

// settings describes the clients' configuration files: the member with the servers, and the allowed
// members of a server.
var settings = map[string]struct{ language, servers, members string }{
	"claude-code": {"json", "mcpServers", "type url"},
	"cursor":      {"json", "mcpServers", "url auth"},
	"vscode":      {"json", "servers", "type url oauth"},
	"codex":       {"toml", "mcp_servers", "url"},
	"gemini-cli":  {"json", "mcpServers", "httpUrl"},
	"windsurf":    {"json", "mcpServers", "serverUrl"},
	"zed":         {"json", "context_servers", "url"},
	"mcp-remote":  {"json", "mcpServers", "command args"},
	"librechat":   {"yaml", "mcpServers", "type url oauth"},
}

// checkForeign checks a client's configuration against the client's documentation. Every member
// must be known, and the MCP server must be one of the manual.
func checkForeign(t *testing.T, b block) {
	t.Helper()
	if err := foreign(ofClient.FindStringSubmatch(b.mark)[1], b.language, b.text, flagsOf(t)); err != nil {
		t.Errorf("%v\n%s", err, b.text)
	}
}

func foreign(client, language, text string, flags []string) error {
	s, ok := settings[client]
	if !ok || s.language != language {
		return fmt.Errorf("nothing here knows a configuration of %s in %s", client, language)
	}
	var generic map[string]map[string]map[string]any
	var known map[string]map[string]server
	if err := decode(language, text, &generic, &known); err != nil {
		return err
	}
	if len(generic) != 1 || len(known[s.servers]) == 0 {
		return fmt.Errorf("it does not have %q, and only that", s.servers)
	}
	for name, members := range generic[s.servers] {
		for member := range members {
			if !slices.Contains(strings.Fields(s.members), member) {
				return fmt.Errorf("%s of %s has no %q", name, client, member)
			}
		}
		c := known[s.servers][name]
		at := c.URL + c.HTTPURL + c.ServerURL
		if c.Command != "" {
			if c.Command != "npx" || len(c.Args) < 3 || c.Args[1] != "mcp-remote" {
				return fmt.Errorf("%s does not start mcp-remote", name)
			}
			at = c.Args[2]
			for _, f := range c.Args[3:] {
				if strings.HasPrefix(f, "--") && !slices.Contains(flags, f) {
					return fmt.Errorf("mcp-remote has no %s", f)
				}
			}
		}
		if err := ofManual(at); err != nil {
			return err
		}
	}
	return nil
}

// decode decodes a text twice: strictly, where an unknown or misspelled member is an error, and
// generically.
func decode(language, text string, generic, known any) error {
	switch language {
	case "toml":
		if err := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(known); err != nil {
			return err
		}
		return toml.Unmarshal([]byte(text), generic)
	case "yaml":
		d := yaml.NewDecoder(strings.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(known); err != nil {
			return err
		}
		return yaml.Unmarshal([]byte(text), generic)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(known); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more follows")
	}
	if err := json.Unmarshal([]byte(text), generic); err != nil {
		return err
	}
	// encoding/json accepts URL for url, which clients do not.
	again, err := json.Marshal(known)
	if err != nil {
		return err
	}
	var a, b any
	if err := json.Unmarshal(again, &a); err != nil {
		return err
	}
	if err := json.Unmarshal(bytes.TrimSpace([]byte(text)), &b); err != nil {
		return err
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("a member is spelled otherwise than the client spells it: it reads %s", again)
	}
	return nil
}

// ofManual returns an error unless an MCP server is one of the manual: below example.com with
// https, or that of demo and protect.
func ofManual(at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	remote := u.Scheme == "https" && u.Host == "mcp.example.com"
	local := u.Scheme == "http" && u.Host == "127.0.0.1:8414"
	if !remote && !local || u.Path != "/mcp" || u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("the MCP server %q is not in the manual", at)
	}
	return nil
}

// forms match complete commands of clients, according to their documentation when the pages were
// written. ofManual checks the URL.
var forms = []*regexp.Regexp{
	regexp.MustCompile(`^claude mcp add --transport http(?: --scope (?:user|project))? [a-z]+ (\S+)$`),
	regexp.MustCompile(`^codex mcp add [a-z]+ --url (\S+)$`),
	regexp.MustCompile(`^codex mcp (?:login|logout) [a-z]+()$`),
	regexp.MustCompile(`^gemini mcp add --transport http [a-z]+ (\S+)$`),
	regexp.MustCompile(`^npx @modelcontextprotocol/inspector()$`),
	regexp.MustCompile(`^npx @modelcontextprotocol/inspector --cli (\S+) --transport http --method tools/list$`),
	regexp.MustCompile(`^npx -p mcp-remote mcp-remote-client (\S+)$`),
}

var programs = regexp.MustCompile(`^(claude|codex|gemini|npx @modelcontextprotocol/inspector|npx -p mcp-remote)\b`)

// checkForm returns an error unless a client has this command.
func checkForm(line string) error {
	for _, form := range forms {
		m := form.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] == "" {
			return nil
		}
		return ofManual(m[1])
	}
	return fmt.Errorf("no client has the command %q", line)
}

// flagsOf returns the flags of the installed mcp-remote.
func flagsOf(t *testing.T) (flags []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(npmtest.Dir(t), "node_modules/mcp-remote/dist/*.js"))
	if err != nil || len(files) == 0 {
		t.Fatalf("mcp-remote is not installed: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`["'](--[a-z][a-z-]+)["']`).FindAllSubmatch(b, -1) {
			flags = append(flags, string(m[1]))
		}
	}
	return flags
}

// TestForeign checks that unknown members and commands are found.
func TestForeign(t *testing.T) {
	for _, c := range []struct{ client, language, text, want string }{
		{"cursor", "json", `{"mcpServers": {"a": {"url": "https://mcp.example.com/mcp"}}}`, ""},
		{"cursor", "json", `{"servers": {"a": {"url": "https://mcp.example.com/mcp"}}}`, `it does not have "mcpServers"`},
		{"cursor", "json", `{"mcpServers": {"a": {"URL": "https://mcp.example.com/mcp"}}}`, "spelled otherwise"},
		{"cursor", "json", `{"mcpServers": {"a": {"serverUrl": "https://mcp.example.com/mcp"}}}`, `has no "serverUrl"`},
		{"cursor", "json", `{"mcpServers": {"a": {"uri": "https://mcp.example.com/mcp"}}}`, `unknown field "uri"`},
		{"cursor", "json", `{"mcpServers": {"a": {"url": "http://mcp.example.com/mcp"}}}`, "is not in the manual"},
		{"cursor", "json", `{"mcpServers": {"a": {"url": "https://mcp.example.com"}}}`, "is not in the manual"},
		{"cursor", "toml", "[mcpServers.a]\n", "nothing here knows"},
		{"codex", "toml", "[mcp_servers.a]\nurl = \"https://mcp.example.com/mcp\"\n", ""},
		{"codex", "toml", "[mcp_servers.a]\nuri = \"https://mcp.example.com/mcp\"\n", "strict mode"},
		{"librechat", "yaml", "mcpServers: {a: {typ: x}}\n", "field typ not found"},
		{"mcp-remote", "json", `{"mcpServers": {"a": {"command": "npx",
			"args": ["-y", "mcp-remote", "https://mcp.example.com/mcp", "--no-such"]}}}`, "mcp-remote has no --no-such"},
	} {
		err := foreign(c.client, c.language, c.text, []string{"--allow-http"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.text, err, c.want)
		}
	}
	for line, want := range map[string]string{
		"codex mcp add notes --url https://mcp.example.com/mcp":               "",
		"codex mcp add --transport http notes https://mcp.example.com/mcp":    "no client has the command",
		"claude mcp add --transport http notes http://mcp.example.com/mcp":    "is not in the manual",
		"claude mcp add --transport http demo http://127.0.0.1:8414/mcp":      "",
		"npx @modelcontextprotocol/inspector --cli https://mcp.example.com/x": "no client has the command",
	} {
		if err := checkForm(line); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}
