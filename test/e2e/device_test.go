package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// runDeviceLogin runs the login command as a program without a browser. The user opens the
// displayed address on another device. It returns the steps.
func runDeviceLogin(t *testing.T, p *demotest.Person, args ...string) (steps []map[string]any, err error) {
	t.Helper()
	return runSteps(t, types(p), append([]string{"--device"}, args...)...)
}

// types opens the address of a step on another device of the user.
func types(p *demotest.Person) func(step map[string]any) error {
	return func(step map[string]any) error {
		if link, ok := step["verification_uri_complete"].(string); ok {
			return p.Answer(link)
		}
		return nil
	}
}

func TestLoginOnAnotherDevice(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	t.Run("AS-240 the tools, without a browser and a listener", func(t *testing.T) {
		p := d.Person()
		steps, err := runDeviceLogin(t, p, "--call", "add_note", "--arg", "text=hello", d.MCPURL)
		all := []string{
			"challenge", "resource", "metadata", "registration", "device", "token", "tools", "device", "token", "tools",
		}
		if err != nil || !slices.Equal(names(steps), all) {
			t.Fatalf("got %v, %v", steps, err)
		}
		result, _ := json.Marshal(steps[len(steps)-1]["result"])
		if string(result) != `{"notes":["hello"]}` {
			t.Errorf("got %s", result)
		}
		if secret := printedSecret(steps); secret != "" {
			t.Errorf("AS-06 a device code or a token is printed: %s", secret)
		}
		if pages := strings.Join(p.Pages, ""); !strings.Contains(pages, "mcp-authd login") ||
			!strings.Contains(pages, steps[4]["user_code"].(string)) {
			t.Error("the page does not say who asks, with the code")
		}
	})
	t.Run("denied, it says so and exits with 1", func(t *testing.T) {
		p := d.Person()
		p.Decision = "deny"
		steps, err := runDeviceLogin(t, p, d.MCPURL)
		last := steps[len(steps)-1]
		if err == nil || last["step"] != "device" || !strings.Contains(last["error"].(string), "access_denied") ||
			last["advice"] == "" {
			t.Errorf("got %v, %v", last, err)
		}
	})
}
