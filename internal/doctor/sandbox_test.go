//go:build linux

package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/sandbox"
)

// TestDoctorOnSandboxes checks the findings about sandboxes of programs (SP-24).
func TestDoctorOnSandboxes(t *testing.T) {
	complete := len((&sandbox.Policy{}).Lacking()) == 0
	shutIn := "is shut in (" + sandbox.Kernel() + ")"
	for name, c := range map[string]struct{ sandbox, level, want string }{
		"shut in":                      {"{preset: strict, processes: -1}", "ok", shutIn},
		"as far as it can be":          {"{preset: network, best_effort: true}", "ok", shutIn},
		"a limit that binds nobody":    {"{preset: strict}", "fail", "so the limit on processes would not hold"},
		"a directory that may be read": {"{preset: strict, processes: -1, read: [/]}", "ok", shutIn},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a limit that binds nobody" && os.Geteuid() != 0 {
				c.level, c.want = "ok", "is shut in"
			}
			if !complete {
				c.level, c.want = "fail", "the sandbox is not available"
				if strings.Contains(c.sandbox, "best_effort") {
					c.level, c.want = "warn", "is weaker than it was asked for"
				}
			}
			d := testDoctor(t, `
issuer: https://auth.example.com
resources:
  - uri: https://notes.example.com/mcp
    scopes: [{name: notes, description: read your notes, default: true}]
    upstream:
      command: [/bin/true]
      sandbox: `+c.sandbox+"\n")
			d.programs()
			found := false
			for _, f := range d.findings {
				found = found || f.Check == "programs" && f.Level == c.level && strings.Contains(f.What, c.want) &&
					strings.Contains(f.What, "https://notes.example.com/mcp")
				if f.Level == "fail" && !strings.Contains(f.Advice, "best_effort") {
					t.Errorf("SP-24: the advice is %q", f.Advice)
				}
			}
			if !found {
				t.Errorf("SP-24: got %+v, want %s: %s", d.findings, c.level, c.want)
			}
		})
	}
}
