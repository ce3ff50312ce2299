package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// composeFile is the part of a compose file that the tests support. An unknown key is an error.
type composeFile struct {
	Name     string
	Services map[string]service
	Secrets  map[string]struct{ File string }
	Volumes  map[string]any
	Networks map[string]struct {
		Internal bool
		IPAM     any `yaml:"ipam"`
	}
}

type service struct {
	Image       string
	Command     []string
	Environment map[string]string
	Secrets     []string
	Networks    []string
	Ports       []string
	Volumes     []string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Healthcheck struct {
		Test        []string
		Interval    time.Duration
		Timeout     time.Duration
		StartPeriod time.Duration `yaml:"start_period"`
	}
	DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
	Restart   string
	StopGrace time.Duration `yaml:"stop_grace_period"`
}

var variable = regexp.MustCompile(`\$\{([A-Z]+)(:\?[^}]*)?\}`)

// compose reads the compose file in a directory, with the variables of its .env.
func compose(t *testing.T, dir string) composeFile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(filepath.Join(dir, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	text = variable.ReplaceAllFunc(text, func(v []byte) []byte {
		name := variable.FindSubmatch(v)[1]
		_, value, ok := bytes.Cut(env, append(name, '='))
		if !ok {
			t.Fatalf("DL-04: .env has no %s", name)
		}
		value, _, _ = bytes.Cut(value, []byte("\n"))
		return value
	})
	var c composeFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		t.Fatalf("DL-04: compose.yaml: %v", err)
	}
	return c
}

// prepare runs prepare.sh for a host in a copy of deploy/compose.
func prepare(t *testing.T, host string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../deploy/compose")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second run must keep the existing files
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "prepare.sh"), host).CombinedOutput()
		if err != nil {
			t.Fatalf("DL-04: prepare.sh: %v\n%s", err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "prepare.sh"), "other.example.com").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "which stays: DOMAIN="+host) {
		t.Errorf("DL-04: prepare.sh for another name: %v\n%s", err, out)
	}
	return dir
}

// TestComposeHoldsTogether checks the compose file (DL-04). The files that it names must exist,
// services must reach each other through their networks, and the server must have no more than it
// needs.
func TestComposeHoldsTogether(t *testing.T) {
	dir := prepare(t, "auth.example.com")
	c := compose(t, dir)
	for name, s := range c.Services {
		for _, secret := range s.Secrets {
			info, err := os.Stat(filepath.Join(dir, c.Secrets[secret].File))
			if err != nil || info.Mode().Perm() != 0o444 {
				t.Errorf("DL-04: the secret %s of %s: %v %v", secret, name, info, err)
			}
		}
		for other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("DL-04: %s depends on %s, which there is not", name, other)
			}
		}
		for _, n := range s.Networks {
			if _, ok := c.Networks[n]; !ok {
				t.Errorf("DL-04: %s is in the network %s, which there is not", name, n)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := c.Volumes[from]
			if _, err := os.Stat(filepath.Join("../../deploy/compose", from)); err != nil && !named {
				t.Errorf("DL-04: the volume %s of %s: %v", from, name, err)
			}
		}
		if len(s.Ports) > 0 && name != "caddy" {
			t.Errorf("DL-04: %s has ports that are published: %v", name, s.Ports)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "secrets")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("DL-04: the directory of secrets: %v %v", info, err)
	}
	for _, pair := range [][2]string{
		{"caddy", "mcp-authd"}, {"mcp-authd", "postgres"}, {"migrate", "postgres"}, {"mcp-authd", "everything"},
	} {
		shared := func(n string) bool { return slices.Contains(c.Services[pair[1]].Networks, n) }
		if !slices.ContainsFunc(c.Services[pair[0]].Networks, shared) {
			t.Errorf("DL-04: %s does not reach %s", pair[0], pair[1])
		}
	}
	if slices.ContainsFunc(c.Services["everything"].Networks, func(n string) bool {
		return slices.Contains(c.Services["caddy"].Networks, n)
	}) {
		t.Error("DL-04: the MCP server can be reached past the gateway")
	}
	for _, name := range []string{"mcp-authd", "migrate"} {
		s := c.Services[name]
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.SecurityOpt) != 1 {
			t.Errorf("DL-04: %s may do more than it needs: %+v", name, s)
		}
	}
	if subnet := fmt.Sprint(c.Networks["proxied"].IPAM); !strings.Contains(subnet,
		c.Services["mcp-authd"].Environment["MCP_AUTHD_TRUSTED_PROXIES"]) {
		t.Errorf("DL-04: trusted_proxies is not the network of Caddy: %s", subnet)
	}
	var bare []string
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "prepare.sh"), bare...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "usage: ") {
		t.Errorf("DL-04: prepare.sh without a name: %v %s", err, out)
	}
}

// TestCompose runs each service with its command and environment. A user signs in at the MCP server
// of the example through Caddy and the gateway (DL-04).
func TestCompose(t *testing.T) {
	lane.Long(t, "TestComposeHoldsTogether reads the file")
	caddy := installed(t, "caddy")
	listens, backend, management, inner := nettest.For(t), nettest.For(t), nettest.For(t), nettest.For(t)
	f := newFront(t, listens, backend)
	dir := prepare(t, strings.TrimPrefix(f.issuer, "https://"))
	c := compose(t, dir)
	database := pgtest.StartOwn(t)

	// These replace addresses and files of a container with those of this machine.
	_, toolPort, _ := net.SplitHostPort(inner) // the address is valid
	secrets := t.TempDir()
	here := strings.NewReplacer("/run/secrets", secrets, "@postgres/", "@"+database.Host()+"/",
		"mcp-authd:8414", backend, "everything:3001", inner)
	for name, s := range c.Secrets {
		b, err := os.ReadFile(filepath.Join(dir, s.File))
		if err == nil {
			err = os.WriteFile(filepath.Join(secrets, name), []byte(here.Replace(string(b))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	process := func(name string, program string, args []string, more ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		for key, value := range c.Services[name].Environment {
			cmd.Env = append(cmd.Env, key+"="+here.Replace(value))
		}
		cmd.Env = append(cmd.Env, more...)
		return cmd
	}

	// PostgreSQL creates this user and database at its first start.
	pg := c.Services["postgres"].Environment
	word, err := os.ReadFile(here.Replace(pg["POSTGRES_PASSWORD_FILE"]))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", pg["POSTGRES_USER"], strings.TrimSpace(string(word))),
		fmt.Sprintf("CREATE DATABASE %s OWNER %s", pg["POSTGRES_DB"], pg["POSTGRES_USER"]),
	} {
		if err := database.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	health := c.Services["postgres"].Healthcheck.Test
	at, err := url.Parse(database.URL())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := process("postgres", health[1], health[2:], "PGPORT="+at.Port()).CombinedOutput(); err != nil {
		t.Fatalf("DL-04: the health check of PostgreSQL: %v\n%s", err, out)
	}

	own := []string{
		"MCP_AUTHD_DATA_DIR=" + t.TempDir(), // as in the image
		"MCP_AUTHD_LISTEN=" + backend, "MCP_AUTHD_MANAGEMENT_LISTEN=" + management,
		"MCP_AUTHD_TRUSTED_PROXIES=127.0.0.1", // the address of Caddy in this test
	}
	binary := program.Authd(t)
	if out, err := process("migrate", binary, c.Services["migrate"].Command).CombinedOutput(); err != nil {
		t.Fatalf("DL-04: the service migrate: %v\n%s", err, out)
	}
	f.run(t, process("mcp-authd", binary, c.Services["mcp-authd"].Command, own...))

	// npx would download the package that test/package-lock.json pins.
	tool := c.Services["everything"].Command
	if len(tool) != 4 || tool[0] != "npx" || tool[1] != "-y" {
		t.Fatalf("DL-04: the command of the MCP server is %v", tool)
	}
	modules := filepath.Join(npmtest.Dir(t), "node_modules")
	script := filepath.Join(modules, filepath.FromSlash(tool[2]), "dist", "index.js")
	node := filepath.Join(modules, ".bin", "node")
	everything := process("everything", node, []string{script, tool[3]}, "PORT="+toolPort)
	if err := everything.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = everything.Process.Kill()
		_ = everything.Wait() // killed
	})

	wait.Success(t, "DL-04: the MCP server listens", func() error {
		c, err := net.Dial("tcp", inner)
		if err == nil {
			c.Close()
		}
		return err
	})

	front := f.caddy(t, caddy)
	if got := c.Services["caddy"].Command; !slices.Equal(got[:2], []string{"caddy", "run"}) {
		t.Errorf("DL-04: the command of Caddy is %v", got)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Services["caddy"].Environment)) {
		front.Env = append(front.Env, key+"="+here.Replace(c.Services["caddy"].Environment[key]))
	}
	f.run(t, front)
	demotest.Ready(t, f.issuer, f.log)

	check := c.Services["mcp-authd"].Healthcheck.Test
	if check[0] != "CMD" || check[1] != "/usr/bin/mcp-authd" {
		t.Fatalf("DL-04: the health check is %v", check)
	}
	if out, err := process("mcp-authd", binary, check[2:], own...).CombinedOutput(); err != nil {
		t.Errorf("DL-04: the health check of the server: %v\n%s", err, out)
	}
	add := process("mcp-authd", binary, []string{"user", "add", "alice", "--password-stdin"}, own...)
	add.Stdin = strings.NewReader(password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("user add: %v\n%s", err, out)
	}
	demotest.Login(t, demotest.NewPerson("alice", password), f.issuer+"/mcp", "SSL_CERT_FILE="+f.roots)
}
