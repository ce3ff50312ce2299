//go:build unix

package browsertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// When a test process ends in any way, its Chromium ends and its profile is removed.
func TestChromiumEndsWithTheProcess(t *testing.T) {
	const variable = "BROWSERTEST_ENDS_BY"
	ends := map[string]func(){
		"exit":  func() { os.Exit(0) },
		"panic": func() { panic("of a test") },
		"kill":  func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	}
	if end := ends[os.Getenv(variable)]; end != nil { // in the child process
		b := Open(t, desktop)
		b.Do(chromedp.Navigate("about:blank"))
		dir, err := profiles()
		fmt.Println("profiles", dir, err)
		end()
		select {}
	}
	Need(t)
	for how := range ends {
		t.Run(how, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestChromiumEndsWithTheProcess$")
			cmd.Env = append(os.Environ(), variable+"="+how)
			out, _ := cmd.CombinedOutput()
			_, said, _ := strings.Cut(string(out), "profiles ")
			dir, _, _ := strings.Cut(said, " ")
			if !filepath.IsAbs(dir) {
				t.Fatalf("the process says %s", out)
			}
			wait.Success(t, "the profile is removed", func() error {
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					return fmt.Errorf("%s is there (%v)", dir, err)
				}
				return nil
			})
			wait.Success(t, "no Chromium is left", func() error {
				all, err := exec.Command("ps", "-eo", "pid,args").Output()
				if err == nil && strings.Contains(string(all), dir) {
					err = fmt.Errorf("%s", all)
				}
				return err
			})
		})
	}
}
