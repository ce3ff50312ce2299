package examples

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// flyFile has the keys of fly.toml that the manual uses, according to Fly's documentation.
type flyFile struct {
	App           string
	PrimaryRegion string `toml:"primary_region"`
	KillSignal    string `toml:"kill_signal"`
	KillTimeout   string `toml:"kill_timeout"`
	Build         struct{ Image string }
	Env           map[string]string
	Mounts        struct{ Source, Destination string }
	HTTPService   struct {
		InternalPort       int    `toml:"internal_port"`
		ForceHTTPS         bool   `toml:"force_https"`
		AutoStopMachines   string `toml:"auto_stop_machines"`
		AutoStartMachines  bool   `toml:"auto_start_machines"`
		MinMachinesRunning int    `toml:"min_machines_running"`
		Checks             []struct {
			Method, Path, Interval, Timeout string
			GracePeriod                     string `toml:"grace_period"`
		}
	} `toml:"http_service"`
}

// checkFly decodes a fly.toml strictly, and passes its variables to mcp-authd.
func checkFly(t *testing.T, b block) {
	t.Helper()
	if err := fly(t, b.text); err != nil {
		t.Errorf("%v\n%s", err, b.text)
	}
}

func fly(t *testing.T, text string) error {
	t.Helper()
	var f flyFile
	if err := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(&f); err != nil {
		return err
	}
	if f.Env["MCP_AUTHD_LISTEN"] != fmt.Sprintf(":%d", f.HTTPService.InternalPort) {
		return fmt.Errorf("it listens on %q, and Fly asks at %d", f.Env["MCP_AUTHD_LISTEN"], f.HTTPService.InternalPort)
	}
	if f.Mounts.Destination != "/data" {
		return fmt.Errorf("the image keeps its data in /data, not in %q", f.Mounts.Destination)
	}
	cmd := exec.Command(program.Authd(t), "config", "validate")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "MCP_AUTHD_SECRET_KEY="+strings.Repeat("ab", 32))
	for name, value := range f.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err == nil && strings.Contains(string(out), "is not known") { // an unknown variable is only a warning
		err = errors.New("there is no such variable")
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// TestFly checks that faults in a fly.toml are found.
func TestFly(t *testing.T) {
	const right = `
[env]
MCP_AUTHD_LISTEN = ":8414"
MCP_AUTHD_ISSUER = "https://auth.example.com"
[mounts]
destination = "/data"
[http_service]
internal_port = 8414
`
	for _, c := range []struct{ change, to, want string }{
		{"", "", ""},
		{"internal_port", "internal-port", "strict mode"},
		{"= 8414", "= 8080", "Fly asks at 8080"},
		{"/data", "/var/data", "keeps its data in /data"},
		{"MCP_AUTHD_ISSUER", "MCP_AUTHD_ISUER", "did you mean MCP_AUTHD_ISSUER"},
		{"https://auth", "http://auth", "issuer"},
	} {
		err := fly(t, strings.Replace(right, c.change, c.to, 1))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.to, err, c.want)
		}
	}
}

// TestGuides: DL-05. Each page in these directories describes its tests, and the guides link to it.
func TestGuides(t *testing.T) {
	pages := manual(t)
	for folder, least := range map[string]int{"stacks": 6, "platforms": 5, "migrate": 4} {
		found := 0
		for page, text := range pages {
			name, ok := strings.CutPrefix(page, "docs/"+folder+"/")
			if !ok {
				continue
			}
			found++
			t.Run(folder+"/"+name, func(t *testing.T) {
				if !strings.Contains(text, "**What was run.**") {
					t.Error("it does not name the commands that were run")
				}
				if !strings.Contains(pages["docs/goals.md"], "("+path.Join(folder, name)+")") {
					t.Error("docs/goals.md does not lead to it")
				}
				if folder == "migrate" {
					for _, part := range []string{
						"**What carries over**", "**What clients notice.**", "## Step by step", "**Rollback**",
					} {
						if !strings.Contains(text, part) {
							t.Errorf("it lacks %q", part)
						}
					}
				}
			})
		}
		if found < least {
			t.Errorf("docs/%s has %d pages", folder, found)
		}
	}
	others := []string{"Keycloak", "Ory Hydra", "Dex", "Authelia", "Pocket ID", "FastMCP", "sigbit/mcp-auth-proxy",
		"agentgateway", "Auth0", "WorkOS", "Stytch"}
	for _, name := range others {
		if !strings.Contains(pages["docs/compare.md"], name) {
			t.Errorf("docs/compare.md does not have %s", name)
		}
	}
}
