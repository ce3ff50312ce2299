package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// runSteps runs the login command and returns its steps. It calls on for each step.
func runSteps(t *testing.T, on func(step map[string]any) error, args ...string) (steps []map[string]any, err error) {
	t.Helper()
	cmd := exec.Command(program.Authd(t), append([]string{"login", "--json"}, args...)...)
	out, pipeErr := cmd.StdoutPipe()
	if pipeErr != nil {
		t.Fatal(pipeErr)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var step map[string]any
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		steps = append(steps, step)
		if err := on(step); err != nil {
			t.Error(err)
		}
	}
	return steps, cmd.Wait()
}

// secrets matches device codes, refresh tokens and JWTs. The whole form of a JWT matters: a random client ID
// may contain the three letters with which one begins.
var secrets = regexp.MustCompile(`mcpdc_|mcprt_|eyJ[\w-]+\.[\w-]+\.`)

// printedSecret returns the first secret in the steps, or nothing.
func printedSecret(steps []map[string]any) string {
	b, _ := json.Marshal(steps)
	return secrets.FindString(string(b))
}

// runLogin runs the login command. The user visits each URL that it prints.
func runLogin(t *testing.T, p *demotest.Person, args ...string) (steps []map[string]any, err error) {
	t.Helper()
	return runSteps(t, visits(p), append([]string{"--no-browser"}, args...)...)
}

// visits visits the URL of a step as the user, and returns to the command.
func visits(p *demotest.Person) func(step map[string]any) error {
	return func(step map[string]any) error {
		link, ok := step["url"].(string)
		if !ok {
			return nil
		}
		back, err := p.Visit(link)
		if err != nil {
			return err
		}
		resp, err := http.Get(back.String())
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
}

func names(steps []map[string]any) (out []string) {
	for _, s := range steps {
		out = append(out, s["step"].(string))
	}
	return out
}

func TestLogin(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	all := []string{"challenge", "resource", "metadata", "registration", "browser", "token", "tools"}
	t.Run("CL-02 CL-04 CL-17 CL-23 every step, and the tools", func(t *testing.T) {
		steps, err := runLogin(t, d.Person(), d.MCPURL)
		if err != nil || !slices.Equal(names(steps), all) {
			t.Fatalf("got %v, %v", steps, err)
		}
		if tools := steps[6]["tools"].([]any); len(tools) != 5 {
			t.Errorf("got %v", tools)
		}
	})
	t.Run("CL-20 a tool that needs more scope is stepped up to", func(t *testing.T) {
		steps, err := runLogin(t, d.Person(), "--call", "add_note", "--arg", "text=hello", d.MCPURL)
		if err != nil || !slices.Equal(names(steps), append(append([]string{}, all...), "browser", "token", "tools")) {
			t.Fatalf("got %v, %v", steps, err)
		}
		result, _ := json.Marshal(steps[len(steps)-1]["result"])
		if string(result) != `{"notes":["hello"]}` {
			t.Errorf("got %s", result)
		}
	})
	t.Run("denied, it says so and exits with 1", func(t *testing.T) {
		p := d.Person()
		p.Decision = "deny"
		steps, err := runLogin(t, p, d.MCPURL)
		last := steps[len(steps)-1]
		if err == nil || last["step"] != "browser" || !strings.Contains(last["error"].(string), "access_denied") ||
			last["advice"] == "" {
			t.Errorf("got %v, %v", last, err)
		}
	})
	t.Run("AS-06 no token is printed", func(t *testing.T) {
		steps, _ := runLogin(t, d.Person(), d.MCPURL)
		if secret := printedSecret(steps); secret != "" {
			t.Errorf("got %s", secret)
		}
	})
	t.Run("check finds nothing wrong with the demo", func(t *testing.T) {
		out, err := exec.Command(program.Authd(t), "check", "--json", d.MCPURL).Output()
		var findings []map[string]string
		if json.Unmarshal(out, &findings) != nil || err != nil || len(findings) < 15 {
			t.Fatalf("got %s, %v", out, err)
		}
		for _, f := range findings {
			if f["level"] != "ok" {
				t.Errorf("%v", f)
			}
		}
	})
	t.Run("check fails for what is not protected", func(t *testing.T) {
		if out, err := exec.Command(program.Authd(t), "check", d.Issuer+"/healthz").Output(); err == nil {
			t.Errorf("got %s", out)
		}
	})
}
