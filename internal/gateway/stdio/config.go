package stdio

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/gateway/peers"
	"github.com/mcp-authd/mcp-authd/internal/sandbox"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Config describes a program that speaks MCP on its standard input and output. Command is
// required; every other zero value is a safe default.
type Config struct {
	Command []string // the program and its arguments
	// Dir is where it runs. Default: where the gateway does.
	Dir string
	// Env is its environment beyond what is passed on: "NAME=value".
	Env []string
	// PassEnv names further variables of the gateway's own environment that it gets.
	PassEnv []string
	// User is whom it runs as: a user of this machine, or UID:GID. Only root can choose.
	// Default: whom the gateway runs as, whose files the program can then read.
	User string
	// Sandbox, when set, is what it may do. What this system cannot keep from it is an error of New, unless
	// the policy is content with less; what is left out then is logged.
	Sandbox *sandbox.Policy
	// Shared has all callers use one process, which knows nothing about who calls. It is right for
	// programs without state, and wrong for programs that could mix up people.
	Shared bool
	// Idle is how long a session, or a process, without a request or an open stream is
	// kept. Default: 15 minutes.
	Idle time.Duration
	// MaxProcesses bounds how many run at once, and MaxPerCaller how many of them for one
	// caller. Defaults: 64 and 8.
	MaxProcesses, MaxPerCaller int
	// MaxMessage bounds one message of the program. Default: 16 MiB.
	MaxMessage int
	// MaxPending bounds the requests of one process that wait for an answer. Default: 128.
	MaxPending int
	// PerClient has a session belong to its person with one application. The guard sees to that for requests
	// that reach it; this is for those that other replicas pass on.
	PerClient bool
	// Resource is the URL of the MCP server, by which replicas tell it from others.
	Resource string
	// Peers, when set, passes requests of sessions to the replicas that hold them. MaxBody bounds those that
	// other replicas pass on, in bytes. Default: 4 MiB.
	Peers   *peers.Peers
	MaxBody int
	// Shows, when set, says which entries of lists the caller in the context of a request is shown.
	Shows  gateway.Shows
	Logger *slog.Logger     // default: discard
	Now    func() time.Time // default: time.Now

	environ []string // of the gateway
	account *Account // of User
}

func (c Config) withDefaults() (Config, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return c, errors.New("stdio: Command is empty")
	}
	for _, e := range c.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return c, errors.New("stdio: Env has something that is not NAME=value")
		}
	}
	var err error
	if c.account, err = LookUp(c.User); err != nil {
		return c, err
	}
	if c.Sandbox != nil {
		if err := c.Sandbox.Check(int(c.account.UID)); err != nil {
			return c, err
		}
	}
	if c.Idle <= 0 {
		c.Idle = 15 * time.Minute
	}
	for _, d := range []struct {
		value *int
		use   int
	}{
		{&c.MaxProcesses, 64}, {&c.MaxPerCaller, 8}, {&c.MaxMessage, 16 << 20}, {&c.MaxPending, 128},
		{&c.MaxBody, 4 << 20},
	} {
		if *d.value <= 0 {
			*d.value = d.use
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sandbox != nil {
		for _, missing := range c.Sandbox.Lacking() {
			c.Logger.Warn("the sandbox of an MCP server is weaker than it was asked for", "reason", missing)
		}
	}
	if c.environ == nil {
		c.environ = os.Environ()
	}
	return c, nil
}

// inherited are the variables that programs need to run at all. Everything else in the
// gateway's environment is not theirs to see; its secrets are there.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES", "USERPROFILE",
	"USERNAME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	// Where docker and podman find their daemon and their files: they are called by scripts, too.
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
	"CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINER_SSHKEY", "XDG_RUNTIME_DIR",
}

// The environment variables that tell a program whom it runs for. A shared one has none.
const (
	EnvSubject = "MCP_SUBJECT"
	EnvClient  = "MCP_CLIENT"
)

// env is the environment of a process for p, nil for all callers.
func (c *Config) env(p *mcpresource.Principal) []string {
	allowed := map[string]bool{}
	for _, name := range inherited {
		allowed[name], allowed[strings.ToLower(name)] = true, strings.HasSuffix(name, "PROXY")
	}
	for _, name := range c.PassEnv {
		allowed[name] = true
	}
	out := []string{}
	for _, kv := range c.environ {
		if name, _, _ := strings.Cut(kv, "="); allowed[name] || strings.HasPrefix(name, "LC_") {
			out = append(out, kv)
		}
	}
	out = append(append(out, c.account.env()...), c.Env...)
	if p != nil {
		out = append(out, EnvSubject+"="+p.Subject, EnvClient+"="+p.ClientID)
	}
	return out
}
