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

// Config describes a program that speaks MCP on its standard input and output. Command is required.
// Every other zero value is a safe default.
type Config struct {
	Command []string // program and arguments
	// Dir is the working directory. Default: the gateway's.
	Dir string
	// Env holds additional environment variables, as "NAME=value".
	Env []string
	// PassEnv names additional variables of the gateway's environment to pass on.
	PassEnv []string
	// User is the user that the program runs as: a name, or UID:GID. Only root can choose. Default:
	// the gateway's user, whose files the program can then read.
	User string
	// Sandbox, if set, restricts the program. New returns an error if the system does not support a
	// restriction, unless the policy has BestEffort. Missing restrictions are logged.
	Sandbox *sandbox.Policy
	// Shared makes all callers use one process, which does not learn who calls. This suits programs
	// without state, but not programs that could mix up users.
	Shared bool
	// Idle is the time after which an unused session or process is ended. One with a request or an
	// open stream is in use. Default: 15 minutes.
	Idle time.Duration
	// MaxProcesses limits the processes that run at the same time, and MaxPerCaller those of one
	// caller. Defaults: 64 and 8.
	MaxProcesses, MaxPerCaller int
	// MaxMessage limits the bytes of one message from the program. Default: 16 MiB.
	MaxMessage int
	// MaxPending limits the unanswered requests of one process. Default: 128.
	MaxPending int
	// PerClient binds a session to its user and application. The guard enforces this for requests
	// that it receives. This setting is for requests that other replicas forward.
	PerClient bool
	// Resource is the URL that identifies the MCP server to other replicas.
	Resource string
	// Peers, if set, forwards requests to the replica that holds the session. MaxBody limits the
	// bytes of forwarded bodies. Default: 4 MiB.
	Peers   *peers.Peers
	MaxBody int
	// Shows, if set, reports whether the caller in the request context may see a list entry.
	Shows  gateway.Shows
	Logger *slog.Logger     // default: discard
	Now    func() time.Time // default: time.Now

	environ []string // the gateway's environment
	account *Account // the account of User
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

// inherited lists the variables that programs need to run at all. Programs get no other variables
// of the gateway, because these contain its secrets.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES", "USERPROFILE",
	"USERNAME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	// The docker and podman commands, which scripts may call, find their daemon and files with
	// these.
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
	"CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINER_SSHKEY", "XDG_RUNTIME_DIR",
}

// These environment variables identify the caller to a program. A shared program does not get them.
const (
	EnvSubject = "MCP_SUBJECT"
	EnvClient  = "MCP_CLIENT"
)

// env returns the environment of a process for p, which is nil for all callers.
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
