package e2e

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

var (
	signInURL  = regexp.MustCompile(`^https?://\S+/authorize\?\S+$`)
	signInCode = regexp.MustCompile(`open (\S+) on any device and type the code (\S+)`)
)

// operator is a user at a computer whose commands the demo executes.
type operator struct {
	*testing.T
	demo   *demotest.Demo
	person *demotest.Person
	home   string
	env    []string
}

// run runs a command and signs in if it asks. It returns the output and the number of sign-ins.
func (o *operator) run(args ...string) (out string, asked int, err error) {
	o.Helper()
	cmd := exec.Command(program.Authd(o), args...)
	cmd.Env = append(append(os.Environ(), "XDG_CONFIG_HOME="+o.home, "MCP_AUTHD_REMOTE="+o.demo.Issuer), o.env...)
	var printed strings.Builder
	cmd.Stdout = &printed
	said, pipeErr := cmd.StderrPipe()
	if pipeErr != nil {
		o.Fatal(pipeErr)
	}
	if err := cmd.Start(); err != nil {
		o.Fatal(err)
	}
	var stderr strings.Builder
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		stderr.WriteString(lines.Text() + "\n")
		if code := signInCode.FindStringSubmatch(lines.Text()); code != nil {
			asked++
			if err := o.person.Answer(code[1] + "?user_code=" + code[2]); err != nil {
				o.Error(err)
				_ = cmd.Process.Kill()
			}
		}
		if !signInURL.MatchString(lines.Text()) {
			continue
		}
		asked++
		back, err := o.person.Visit(lines.Text())
		if err != nil {
			o.Error(err)
			_ = cmd.Process.Kill() // otherwise it would wait for minutes
			continue
		}
		resp, err := http.Get(back.String())
		if err != nil {
			o.Error(err)
			continue
		}
		resp.Body.Close()
	}
	err = cmd.Wait()
	return printed.String() + stderr.String(), asked, err
}

// kept returns the path of the sign-in file, or "".
func (o *operator) kept() (path string) {
	_ = filepath.WalkDir(o.home, func(at string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(at, ".json") {
			path = at
		}
		return nil
	})
	return path
}

// change edits the sign-in file.
func (o *operator) change(edit func(map[string]any)) {
	o.Helper()
	text, err := os.ReadFile(o.kept())
	if err != nil {
		o.Fatal(err)
	}
	var k map[string]any
	if err := json.Unmarshal(text, &k); err != nil {
		o.Fatal(err)
	}
	edit(k)
	text, _ = json.Marshal(k)
	if err := os.WriteFile(o.kept(), text, 0o600); err != nil {
		o.Fatal(err)
	}
}

// TestRemoteSignIn: OB-10. A user signs in once for all commands that another server executes.
func TestRemoteSignIn(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	o := &operator{T: t, demo: d, person: d.Person(), home: t.TempDir()}
	if out, _, err := o.run("user", "list"); err == nil || !strings.Contains(out, "sign in at a terminal") {
		t.Errorf("OB-10: a script without a terminal: %s, %v", out, err)
	}
	o.person.Scopes = []string{"admin:read", "admin:write"}
	is := func(what string, want int, args ...string) {
		t.Helper()
		out, asked, err := o.run(args...)
		if err != nil || asked != want || !strings.Contains(out, "demo") {
			t.Errorf("OB-10: %s: asked %d times, want %d; %v\n%s", what, asked, want, err, out)
		}
	}
	is("the first time the person signs in", 1, "user", "show", "demo", "--no-browser")
	is("and then does not, also in a script", 0, "user", "show", "demo")
	for path, want := range map[string]os.FileMode{o.kept(): 0o600, filepath.Dir(o.kept()): 0o700} {
		if at, err := os.Stat(path); err != nil || at.Mode().Perm() != want {
			t.Errorf("OB-10: %s: %v, %v", path, at, err)
		}
	}
	o.change(func(k map[string]any) { k["expires_at"] = "2020-01-01T00:00:00Z" })
	is("a token that has expired is refreshed", 0, "user", "show", "demo")
	o.change(func(k map[string]any) { k["access_token"] = "x" })
	is("one that is refused, too", 0, "user", "show", "demo")
	o.change(func(k map[string]any) { k["access_token"], k["refresh_token"] = "x", "x" })
	is("else the person signs in again", 1, "user", "show", "demo", "--no-browser")
	o.change(func(k map[string]any) { k["access_token"], k["refresh_token"], k["client_id"] = "x", "x", "mcp_gone" })
	is("also when the client is gone", 1, "user", "show", "demo", "--no-browser")

	before, err := o.person.Connected(d.Issuer) // the page lists only the newest grant of the application
	if err != nil || len(before) != 1 {
		t.Fatal(before, err)
	}
	if out, _, err := o.run("logout"); err != nil || !strings.Contains(out, "signed out") || o.kept() != "" {
		t.Errorf("OB-10: logout: %v %s, %q stays", err, out, o.kept())
	}
	if out, _, err := o.run("logout"); err != nil || !strings.Contains(out, "there was no sign-in") {
		t.Errorf("OB-10: logout again: %v %s", err, out)
	}
	if grants, err := o.person.Connected(d.Issuer); err != nil || slices.Contains(grants, before[0]) {
		t.Errorf("OB-10: after the end there are %v, before %v; %v", grants, before, err)
	}
	is("by a code on another device", 1, "user", "show", "demo", "--device")
	is("and then not again", 0, "user", "show", "demo")
}

// TestRemoteSignInAtOnce: OB-10. If several commands start at the same time, only one asks for a
// sign-in.
func TestRemoteSignInAtOnce(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	o := &operator{T: t, demo: d, person: d.Person(), home: t.TempDir()}
	o.person.Scopes = []string{"admin:read"}
	var all sync.WaitGroup
	var mu sync.Mutex // guards times
	times := 0
	for range 4 {
		all.Go(func() {
			out, asked, err := o.run("user", "show", "demo", "--no-browser")
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			mu.Lock()
			times += asked
			mu.Unlock()
		})
	}
	all.Wait()
	if times != 1 {
		t.Errorf("OB-10: asked %d times, want once", times)
	}
}
