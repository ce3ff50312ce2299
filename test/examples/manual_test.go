package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// lacking begins the skip reasons that do not apply to pages for readers with an installation.
const lacking = "it needs an installation"

// notRun returns the reason why a command of a page is not run here.
func notRun(line string) (reason string, ok bool) {
	if programs.MatchString(line) {
		return "it is a client of others; test/clients runs those that can be had", true
	}
	for begin, reason := range map[string]string{
		"go install github.com/mcp-authd/":     "it fetches a released version",
		"curl -u repositories-server:":         "it needs a provider; test/upstream exchanges tokens",
		"curl https://auth.example.com/":       "it needs the token of a person; test/e2e hands such on",
		"mcp-authd grant revoke --from-log ":   "it needs the log of a server; cmd/mcp-authd repeats one",
		"mcp-authd trust ":                     "it needs the installation of a company; scripts of cmd/mcp-authd run it",
		"mcp-authd export ":                    lacking + "; test/e2e moves one",
		"export MCP_AUTHD_SECRET_KEY_FILE=":    "it names a file of an installation",
		"mcp-authd import ":                    "it needs an export; test/e2e moves an installation",
		"mcp-authd restore --check /var/":      "it needs a backup; a script of cmd/mcp-authd tries one",
		"mcp-authd restore /var/":              "it needs a backup; a script of cmd/mcp-authd restores one",
		"mcp-authd backup /var/":               "it writes to a directory of the system; a script of cmd/mcp-authd makes one",
		"mcp-authd user list --data rehearsal": "it needs an installation that was imported",
		"mcp-authd lab ":                       "it needs a server; a script of cmd/mcp-authd tests one",
		"mcp-authd audit ":                     lacking + "; scripts of cmd/mcp-authd run it",
		"mcp-authd health ":                    lacking + "; test/e2e runs it over three servers",
		"mcp-authd group ":                     lacking + "; scripts of cmd/mcp-authd run it",
		"mcp-authd rule ":                      lacking + "; scripts of cmd/mcp-authd run it",
		"mcp-authd attempt ":                   lacking + "; scripts of cmd/mcp-authd run it",
		"go tool pprof ":                       "it needs a server with profiles; internal/assembly asks one for some",
		"curl -so heap.pb.gz ":                 "it needs a server with profiles; internal/assembly asks one for some",
		"mcp-authd events ":                    "it needs a receiver; cmd/mcp-authd lists one",
		"mcp-authd client add --id ":           lacking + "; scripts of cmd/mcp-authd add clients",
		"mcp-authd serve --domain ":            "it needs a name; test/e2e gets a certificate for one",
		"kubectl ":                             "it needs a cluster",
		"helm ":                                "it needs a cluster; test/chart renders the chart and runs its containers",
		"caddy run ":                           "it needs names; test/deploy signs in through Caddy and nginx",
		"cd deploy/compose":                    "it goes with what follows; test/deploy runs the services",
		"./prepare.sh ":                        "it writes secrets; test/deploy runs it",
		"mcp-authd resource tool":              "it needs tools that a gateway has seen; a script of cmd/mcp-authd runs it",
		"mcp-authd resource accept ":           "it needs tools that a gateway has seen; a script of cmd/mcp-authd runs it",
		"mcp-authd resource add https://notes": lacking + "; TestOneCallElsewhere runs it",
		"mcp-authd resource add https://mcp.example.com/notes --upstream": "it needs an issuer at that origin; " +
			"a script of cmd/mcp-authd runs it",
		"sudo ":                             "it changes the machine; test/release installs the deb in a layer over one",
		"journalctl ":                       "it needs systemd",
		"tar -xzf mcp-authd_":               "it needs a release; test/release looks at one",
		"./mcp-authd_1.0.0_":                "it needs a release; test/release runs its program",
		"docker ":                           "it needs Docker; test/release runs the program of the image",
		"brew ":                             "it needs Homebrew",
		"cosign ":                           "it needs a published release",
		"sha256sum --check ":                "it needs a release; test/release compares the checksums",
		"grype ":                            "it is a scanner of others; test/release reads the list",
		"go version -m ":                    "it needs a release; test/release reads the program",
		"git clone --branch v":              "it needs a published release",
		"git clone https://github.com/mcp-": "it fetches this repository",
		"cd mcp-authd":                      "it goes with the clone",
		"make build":                        "the tests build the program themselves",
		"diff SHA256SUMS ":                  "it needs a release; test/release compares two builds",
		"mcp-authd login --call pay ":       "it needs such a tool; test/e2e calls one that needs an approval",
		"gh attestation ":                   "it needs a published release",
		"mcp-authd check https://":          "it needs an MCP server on the internet; README checks one here",
		"mcp-authd login https://":          "it needs an MCP server on the internet; README signs in to one here",
		"fly ":                              "it needs an account at Fly.io",
		"openssl rand -hex 32 | ":           "it needs an account at Fly.io",
		`curl -H "Authorization: Bearer $(mcp-authd token `: "it needs a user at a browser; test/e2e TestToken does it",
		"tailscale ": "it needs an account at Tailscale",
	} {
		if strings.HasPrefix(line, begin) {
			return reason, true
		}
	}
	return "", false
}

// TestManualRuns runs the commands of README and of each page of the manual in order, like a new
// user (issue 11, 4.8). It replaces the addresses of the pages with free ones. Everything else is
// as written.
func TestManualRuns(t *testing.T) {
	lane.Long(t, "TestBlocks checks the commands of the manual")
	ran := 0
	for page, text := range manual(t) {
		all, err := blocks(page, text)
		if err != nil {
			t.Fatal(err)
		}
		var lines []typed
		for _, b := range all {
			if m := toWrite.FindStringSubmatch(b.mark); m != nil {
				lines = append(lines, typed{file: m[1], text: b.text})
			}
			if b.language == "sh" {
				for _, line := range commands(b.text) {
					lines = append(lines, typed{text: line})
				}
			}
		}
		if len(lines) == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			n := newcomer(t)
			has := strings.HasPrefix(page, "docs/runbooks/") // its readers have an installation
			if has {
				n.types("mcp-authd serve")
			}
			for _, l := range lines {
				line := l.text
				if l.file != "" {
					n.write(l.file, l.text)
					continue
				}
				ours := strings.HasPrefix(page, "docs/clients/") && strings.HasPrefix(line, "mcp-authd client add ")
				if reason, ok := notRun(line); ok && !ours && !(has && strings.HasPrefix(reason, lacking)) {
					t.Logf("not run: %s: %s", line, reason)
					continue
				}
				ran++
				n.types(line)
			}
			n.end()
		})
	}
	if ran < 12 {
		t.Errorf("ran %d commands", ran)
	}
}

// toWrite matches the mark of a file that readers of a page must write before they continue:
//
//	<!-- as: mcp-authd.yaml -->
var toWrite = regexp.MustCompile(`^<!-- as: ([a-z.-]+) -->$`)

// typed is a command, or the text of a file.
type typed struct{ file, text string }

// visitor is a new user of mcp-authd with an empty home and a shell.
type visitor struct {
	t       *testing.T
	home    string
	environ []string
	address string
	server  *exec.Cmd
	person  *demotest.Person
	tools   *httptest.Server // the MCP server of the pages, at port 3000

	mu      sync.Mutex // guards handler
	handler http.Handler
}

func newcomer(t *testing.T) *visitor {
	n := &visitor{t: t, home: t.TempDir(), address: nettest.For(t)}
	bin := filepath.Join(n.home, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program.Authd(t), filepath.Join(bin, "mcp-authd")); err != nil {
		t.Fatal(err)
	}
	n.tools = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		h := n.handler
		n.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(n.tools.Close)
	t.Cleanup(n.end)
	n.environ = append(os.Environ(), "HOME="+n.home, "XDG_DATA_HOME=",
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"MCP_AUTHD_LISTEN="+n.address, "MCP_AUTHD_ISSUER=http://"+n.address, "MCP_AUTHD_MANAGEMENT_LISTEN=")
	return n
}

// npx replaces the npx that would download the package. It starts the installed package.
func (n *visitor) npx() {
	modules := filepath.Join(npmtest.Dir(n.t), "node_modules")
	script := "#!/bin/sh\nexec " + filepath.Join(modules, ".bin", "node") + " " +
		filepath.Join(modules, "@modelcontextprotocol/server-everything/dist/index.js") + " stdio\n"
	if err := os.WriteFile(filepath.Join(n.home, "bin", "npx"), []byte(script), 0o700); err != nil {
		n.t.Fatal(err)
	}
}

func mcpServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "list_notes"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	return s
}

// serve sets the handler of the pages' MCP server.
func (n *visitor) serve(h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handler = h
}

// guarded returns that MCP server, protected as in "Protect a server".
func (n *visitor) guarded(resource string) http.Handler {
	v, err := mcpresource.Discover(n.t.Context(), "http://"+n.address, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	g, err := mcpresource.New(mcpresource.Config{
		Resource: resource, AuthorizationServers: []string{"http://" + n.address}, Validator: v,
		Policy: &mcpresource.Rules{Base: []string{"mcp"}},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return gosdk.NewHandler(g, mcpServer(), nil)
}

var runs = regexp.MustCompile(`^mcp-authd (demo|serve|protect|login|check|user add|client add) ?(.*)$`)

// here replaces the addresses in the pages with those of this test.
func (n *visitor) here(text string) string {
	tools := strings.TrimPrefix(n.tools.URL, "http://")
	_, port, _ := net.SplitHostPort(tools)
	return strings.NewReplacer("127.0.0.1:8414", n.address, "localhost:8414", n.address, "127.0.0.1:3000", tools,
		"localhost:3000", "localhost:"+port).Replace(text)
}

// write writes a file into the visitor's directory.
func (n *visitor) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.home, name), []byte(n.here(text)), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// types runs one command. A server continues until the next one, or until the end.
func (n *visitor) types(line string) {
	n.t.Helper()
	line = n.here(line)
	m := runs.FindStringSubmatch(line)
	if m == nil {
		n.sh(line, "")
		return
	}
	switch m[1] {
	case "serve":
		n.start(line)
	case "demo":
		n.start("mcp-authd demo --json --listen " + n.address + " " + m[2])
	case "protect":
		if strings.Contains(line, "-- npx ") {
			n.npx()
		}
		n.serve(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return mcpServer() }, nil))
		n.start("mcp-authd protect --listen " + n.address + " " + m[2])
	case "login":
		n.login("mcp-authd login --json --no-browser " + m[2])
	case "check":
		n.serve(n.guarded(m[2]))
		n.sh(line, "")
	case "client add":
		if n.server == nil {
			n.start("mcp-authd serve")
		}
		n.sh(line, "")
	case "user add":
		n.sh(line+" --password-stdin", "a few words in a row\n")
	}
}

func (n *visitor) shell(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", "exec "+line)
	cmd.Env, cmd.Dir = n.environ, n.home
	return cmd
}

func (n *visitor) sh(line, in string) {
	n.t.Helper()
	cmd := n.shell(line)
	cmd.Stdin = strings.NewReader(in)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// start starts a server and replaces an earlier one.
func (n *visitor) start(line string) {
	n.t.Helper()
	n.end()
	n.server = n.shell(line)
	out, err := n.server.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := n.server.Start(); err != nil {
		n.t.Fatal(err)
	}
	said := bufio.NewReader(out)
	first, _ := said.ReadString('\n') // empty if the server has ended, which the next step reports
	go func() { _, _ = io.Copy(io.Discard, said) }()
	wait.Success(n.t, line+" answers", func() error {
		resp, err := http.Get("http://" + n.address + "/.well-known/oauth-authorization-server")
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	var demo struct{ Username, Password string }
	if json.Unmarshal([]byte(first), &demo) == nil {
		n.person = demotest.NewPerson(demo.Username, demo.Password)
	}
}

// end ends the server like Ctrl-C.
func (n *visitor) end() {
	n.t.Helper()
	if n.server == nil {
		return
	}
	_ = n.server.Process.Signal(syscall.SIGINT) // it may have ended; Wait returns the error
	if err := n.server.Wait(); err != nil {
		n.t.Errorf("%s: %v", n.server.Args, err)
	}
	n.server = nil
}

// login runs login with a user at a browser.
func (n *visitor) login(line string) {
	n.t.Helper()
	cmd := n.shell(line)
	out, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	var said []string
	for s := bufio.NewScanner(out); s.Scan(); {
		said = append(said, s.Text())
		var step struct{ URL string }
		if json.Unmarshal(s.Bytes(), &step) != nil || step.URL == "" {
			continue
		}
		back, err := n.person.Visit(step.URL)
		if err != nil {
			n.t.Errorf("%s: %v", line, err)
			continue
		}
		resp, err := http.Get(back.String())
		if err != nil {
			n.t.Errorf("%s: %v", line, err)
			continue
		}
		resp.Body.Close()
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(strings.Join(said, "\n"), `"tools"`) {
		n.t.Errorf("%s: %v\n%s", line, err, strings.Join(said, "\n"))
	}
}
