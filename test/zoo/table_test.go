package zoo

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
)

// row is the result of a client: "" for untested, yes, or no with the reason.
type row struct{ registers, signsIn, calls, refreshes, survives string }

// step runs one step and records its outcome. Steps that depend on a failed step are skipped.
func (*row) step(t *testing.T, outcome *string, name string, run func(*testing.T)) {
	if t.Failed() {
		return
	}
	*outcome = "no"
	if t.Run(name, run) {
		*outcome = "yes"
	}
}

const (
	tablePath = "../../docs/clients.md"
	liveBegin = "<!-- live -->"
	liveEnd   = "<!-- /live -->"
)

const introduction = `# Clients

Does your MCP client work with this server, and how do you connect it? These pages have the steps
and the behaviour of each: [Claude](clients/claude.md), [Claude Code](clients/claude-code.md),
[ChatGPT](clients/chatgpt.md), [Cursor](clients/cursor.md), [VS Code](clients/vscode.md),
[Codex](clients/codex.md), [Gemini CLI](clients/gemini-cli.md), [Windsurf](clients/windsurf.md),
[Zed](clients/zed.md), [MCP Inspector](clients/inspector.md), [mcp-remote](clients/mcp-remote.md)
and [LibreChat](clients/librechat.md). This page is the overview of all.

` + "`go test ./test/zoo -update`" + ` writes this table, and the test fails when the table no longer matches
the run. The test replays against the built server the requests that each client is known to send.
The client registers, a user signs in and approves, the client exchanges the code and then the
refresh token, and calls a tool with each access token. Then the server loses its database but not
its master key. The client does not know this, and comes back with its old id.

The column "Evidence" names the source of the requests. *executed* means recorded from the released
client; *read* means taken from its source; *issue* means taken from captures and reports of others;
a *hypothesis* is a plausible shape for a client that has not been recorded. The word after it is
our confidence. Words after a client's name describe a known variation of its requests. The test
publishes each document at its real URL. A document marked *reconstructed* was not available, and is
derived from the requests that its client sends.

If a client sends a redirect URI that its document does not list, it cannot sign in with that
document. Copilot CLI, for example, publishes only ` + "`http://127.0.0.1:33418/`" + ` and sends
` + "`http://127.0.0.1:PORT/callback`" + `. The user sees a page that says "The redirect URI ... is not
registered for this client", and the client gets no answer. The publisher has to correct the
document. Until then, you can allow the redirect URI for that one client. Users are then asked about
the client again:

` + "```yaml" + `
registration:
  documents_redirects:
  - client_id: https://github.com/copilot/cli/client-metadata.json
    redirect_uris: [http://127.0.0.1/callback]
` + "```" + `

`

// compareTable fails if docs/clients.md does not match the results of this run.
func compareTable(t *testing.T, replays []*replay) {
	t.Helper()
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString(
		"| Client | Version | Evidence | Registers by | Redirect URI | Client authentication | `resource` sent | Registers | Signs in | Calls a tool | Refreshes | Survives a lost database |\n",
	)
	b.WriteString("|" + strings.Repeat("---|", 12) + "\n")
	for _, r := range replays {
		if r.row.registers == "" {
			t.Logf("%s was not replayed: %s is not compared", r.Name, tablePath)
			return
		}
		b.WriteString("| " + strings.Join(r.cells(), " | ") + " |\n")
	}
	old, err := os.ReadFile(tablePath)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	want := b.String() + live(string(old))
	switch {
	case want == string(old):
	case *update && !t.Failed():
		if err := os.WriteFile(tablePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from this run; write it with: go test ./test/zoo -update\n%s", tablePath, want)
	}
}

// live returns the part that another test writes, and the text after it.
func live(file string) string {
	begin, end := strings.Index(file, liveBegin), strings.Index(file, liveEnd)
	if begin < 0 || end < begin {
		return ""
	}
	return "\n" + file[begin:]
}

func (r *replay) cells() []string {
	name := r.Name
	if r.variant != "" {
		name += ", " + r.variant
	}
	cells := []string{
		name, r.Version, r.Evidence + ", " + r.Confidence, r.registersBy(), r.redirectForm(), r.authentication(),
		r.resourceSent(),
		r.row.registers, r.row.signsIn, r.row.calls, r.row.refreshes, r.row.survives,
	}
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return cells
}

func (r *replay) registersBy() string {
	switch r.mode {
	case "dcr":
		return "registration"
	case "preregistered":
		return "operator"
	case "none":
		return ""
	}
	by := "document"
	if r.DocumentReconstructed {
		by += " (reconstructed)"
	}
	if documentsWithout[r.Name] != nil {
		by += " (client_name added)"
	}
	return by
}

// redirectForm returns scheme and host, which operators' policies refer to.
func (r *replay) redirectForm() string {
	u, err := url.Parse(r.RedirectURI)
	switch {
	case err != nil || r.RedirectURI == "":
		return ""
	case u.Scheme == "http":
		return fmt.Sprintf("`http://%s:*`", u.Hostname())
	case u.Scheme == "https":
		return "`https://" + u.Host + "`"
	}
	return "`" + u.Scheme + ":`"
}

func (r *replay) authentication() string {
	if r.Token == nil {
		return ""
	}
	secret, posted := r.Token.Body["client_secret"]
	switch {
	case r.sign:
		return "private_key_jwt"
	case r.method == "none" && posted && secret != "":
		return "none, with an empty `client_secret`"
	case r.method == "none" && r.Token.Authorization != "":
		return "none, as Basic with an empty password"
	case r.method == "":
		return "none"
	}
	return r.method
}

func (r *replay) resourceSent() string {
	if r.Token == nil {
		return ""
	}
	var at []string
	note := func(where, value string) {
		switch {
		case value == "":
		case strings.HasSuffix(value, "{RESOURCE_SLASH}"):
			at = append(at, where+" (with a slash)")
		default:
			at = append(at, where)
		}
	}
	note("authorize", r.Authorize["resource"])
	note("token", r.Token.Body["resource"])
	note("refresh", r.Refresh.Body["resource"])
	if len(at) == 0 {
		return "never"
	}
	return strings.Join(at, ", ")
}
