package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// installation is a configured server: a configuration file, a user and a client.
type installation struct {
	issuer, config, password string
	clientID, clientSecret   string
	redirectPort             string
}

const resourceURL = "http://127.0.0.1:18360/mcp"

// install configures and starts a server with one client. The suite uses a client secret only if
// "none" is not supported, so a confidential client requires a server without public clients.
func install(t *testing.T, confidential bool) *installation {
	t.Helper()
	dir := t.TempDir()
	address := nettest.For(t)
	_, port, _ := strings.Cut(nettest.For(t), ":")
	in := &installation{
		issuer: "http://" + address, config: filepath.Join(dir, "mcp-authd.yaml"), password: "conformance-password",
		redirectPort: port,
	}
	yaml := "issuer: http://" + address + "\nlisten: " + address + "\nmanagement: {listen: \"\"}\ndata_dir: " + dir +
		"/data\n" +
		"resources:\n  - uri: " + resourceURL +
		"\n    name: Suite\n    scopes: [{name: mcp, description: use it, default: true}]\n"
	if confidential {
		yaml += "registration: {enabled: false, public_clients: false}\n"
	}
	if err := os.WriteFile(in.config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	in.run(t, in.password, "user", "add", "suite", "--password-stdin")
	method := "none"
	if confidential {
		method = "client_secret_basic"
	}
	out := in.run(t, "", "client", "add", "--name", "Suite", "--auth-method", method, "--redirect-uri",
		"http://127.0.0.1:"+port+"/callback", "--json")
	var client struct{ ID, Secret string }
	if err := json.Unmarshal(out, &client); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	in.clientID, in.clientSecret = client.ID, client.Secret
	in.serve(t, address)
	return in
}

func (in *installation) run(t *testing.T, stdin string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program.Authd(t), append(args, "--config", in.config)...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out
}

func (in *installation) serve(t *testing.T, address string) {
	t.Helper()
	cmd := exec.Command(program.Authd(t), "serve", "--config", in.config)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve did not exit with 0: %v\n%s", err, log.String())
		}
	})
	waitFor(t, address)
}

var authorizeURL = regexp.MustCompile(`https?://\S+code_challenge_method=S256\S*`)

// TestAuthorization checks that the suite's authorization scenarios end with "3 passed, 0 failed"
// for a public and for a confidential client. The test plays the user in the browser.
func TestAuthorization(t *testing.T) {
	npmtest.Dir(t)
	for name, confidential := range map[string]bool{"AS-02 public client": false, "AS-02 confidential client": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := install(t, confidential)
			args := []string{"authorization", "--url", in.issuer, "--client-id", in.clientID, "-p", in.redirectPort,
				"--resource", resourceURL, "--spec-version", "2026-07-28", "-o", t.TempDir()}
			if confidential {
				args = append(args, "--client-secret", in.clientSecret)
			}
			output := in.play(t, args)
			if !strings.Contains(output, "3 passed, 0 failed") {
				t.Errorf("got:\n%s", output)
			}
		})
	}
}

// play runs the suite and opens the URL that it prints.
func (in *installation) play(t *testing.T, args []string) string {
	t.Helper()
	cmd := npmtest.Command(t, "conformance", args...)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { w.CloseWithError(cmd.Wait()) }()
	var output strings.Builder
	visited := false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		output.WriteString(lines.Text() + "\n")
		if link := authorizeURL.FindString(lines.Text()); link != "" && !visited {
			visited = true
			go in.visit(t, link)
		}
	}
	if !visited {
		t.Errorf("the suite printed no authorization URL")
	}
	return output.String()
}

func (in *installation) visit(t *testing.T, link string) {
	back, err := demotest.NewPerson("suite", in.password).Visit(link)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := http.Get(back.String())
	if err != nil {
		t.Error(err)
		return
	}
	resp.Body.Close()
}
