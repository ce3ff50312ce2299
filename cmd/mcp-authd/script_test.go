package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mcp-authd": main})
}

// TestScripts runs commands as users type them: testdata/script/*.txtar. It uses the released
// program, because starts take ten times as long with the race detector.
func TestScripts(t *testing.T) {
	upstream, bin := fakeidp.Start(t), t.TempDir()
	if err := os.Symlink(program.Authd(t), filepath.Join(bin, "mcp-authd")); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			taken, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Defer(func() { taken.Close() })
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("UPSTREAM", upstream.URL)
			e.Setenv("TAKEN", taken.Addr().String())
			for _, name := range []string{"FREE", "FREE2"} {
				free, err := nettest.Address()
				if err != nil {
					return err
				}
				e.Setenv(name, free)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": scriptJSON, "ready": scriptReady, "tells": scriptTells, "referred": scriptReferred,
			"turnedaway": scriptTurnedAway,
			"token":      scriptToken, "accepts": scriptAccepts,
			"inactive":  scriptInactive,
			"published": scriptPublished, "signs": scriptSigns, "kid": scriptKid, "userid": scriptUserID,
			"signin": scriptSignIn(upstream), "signout": scriptSignOut(upstream), "brokered": scriptBrokered,
			"active": scriptActive, "way": scriptWay, "seen": scriptSeen, "programkey": scriptProgramKey,
			// half FILE NEW writes the first half of FILE to NEW.
			"half": func(ts *testscript.TestScript, _ bool, args []string) {
				b := ts.ReadFile(args[0])
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b[:len(b)/2]), 0o600))
			},
			// exits CODE COMMAND... runs a command that must end with this code.
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				var out, errs strings.Builder
				var environ []string
				for _, k := range []string{
					"HOME", "TAKEN", "MCP_AUTHD_DATABASE_URL", "MCP_AUTHD_LISTEN", "MCP_AUTHD_SECRET_KEY",
					"MCP_AUTHD_SECRET_KEY_FILE", "MCP_AUTHD_TOKENS_ACCES_TTL", "MCP_AUTHD_PORT",
				} {
					if v := ts.Getenv(k); v != "" {
						environ = append(environ, k+"="+v)
					}
				}
				code := run(t.Context(), args[1:], std{strings.NewReader(""), &out, &errs, environ})
				fmt.Fprint(ts.Stdout(), out.String())
				fmt.Fprint(ts.Stderr(), errs.String())
				if fmt.Sprint(code) != args[0] {
					ts.Fatalf("%v ended with %d, want %s\n%s", args[1:], code, args[0], errs.String())
				}
			},
		},
	})
}
