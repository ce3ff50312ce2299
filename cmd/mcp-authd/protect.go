package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// protection holds the flags and arguments of protect.
type protection struct {
	listen, url, path, name, data, user string
	runAs, dpop, sandbox                string
	scopes, first, tools                []string
	headers, env, passEnv               []string
	shared, json                        bool
	upstream                            []string
	command                             bool
}

// protected is the output of protect --json, printed once it is ready.
type protected struct {
	Issuer   string `json:"issuer"`
	MCPURL   string `json:"mcp_url"`
	SetupURL string `json:"setup_url,omitempty"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

func newProtectCommand(s std) *cobra.Command {
	p := &protection{}
	c := &cobra.Command{
		Use:   "protect [flags] UPSTREAM_URL | -- COMMAND [ARG...]",
		Short: "Run the server and a gateway in front of an MCP server",
		Long: "Adds sign-in to an MCP server that has none: a URL, or a program that speaks MCP on its standard\n" +
			"input and output. Authorization server and gateway run in one process, at one origin, and need no\n" +
			"configuration. Accounts, keys and clients are kept in the data directory. The gateway sends the\n" +
			"caller to the MCP server in the headers X-MCP-Subject, X-MCP-Client, X-MCP-Scope and, signed,\n" +
			"X-MCP-Identity. Make sure that only the gateway can reach the MCP server.",
		Example: "  mcp-authd protect http://127.0.0.1:3000/mcp\n" +
			"  mcp-authd protect -- npx -y @modelcontextprotocol/server-everything\n" +
			"  mcp-authd protect --url https://mcp.example.com --scope mcp=\"use it\" --scope admin=\"change things\" \\\n" +
			"    --tool 'delete_*=admin' http://127.0.0.1:3000/mcp",
		Args: func(c *cobra.Command, args []string) error {
			p.upstream, p.command = args, c.ArgsLenAtDash() == 0 && len(args) > 0
			if p.command || c.ArgsLenAtDash() < 0 && len(args) == 1 && !noURL(args) {
				return nil
			}
			return errors.New("wrong arguments")
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.checkFlags(); err != nil {
				return usageError{err, c.CommandPath()}
			}
			return p.run(c.Context(), s)
		},
	}
	f := c.Flags()
	f.StringVar(&p.listen, "listen", "127.0.0.1:8414", "address to listen on; port 0 takes a free one")
	f.StringVar(&p.url, "url", "", "public URL, such as https://mcp.example.com (default: the address)")
	f.StringVar(&p.path, "path", "/mcp", "path of the MCP server there")
	f.StringVar(&p.name, "name", "",
		"display name (default: the name of the MCP server or its package)")
	f.StringArrayVar(&p.scopes, "scope", []string{"mcp=use this server"},
		"scope with the description that users see; repeat for more; every call needs the first")
	f.StringArrayVar(&p.first, "default", nil,
		"scope that is requested at the first sign-in, like the first one; repeat for more. Others are requested when "+
			"a tool needs them")
	f.StringArrayVar(&p.tools, "tool", nil,
		"tool, or prefix with '*', with the scopes that it needs; repeat for more")
	f.StringVar(&p.dpop, "dpop", "",
		"optional or required: whether tokens must be bound to a key of the client (RFC 9449)")
	f.StringVar(&p.data, "data", "",
		"directory for accounts, keys and clients (default: 'protect' in the data directory)")
	f.StringVar(&p.user, "user", "", "create this account and print its password, instead of the setup link")
	f.StringArrayVar(&p.headers, "header", nil,
		"header for the MCP server, \"Name: value\", or @FILE with one on each line; repeat for more")
	f.StringArrayVar(&p.env, "env", nil,
		"environment variable of the program; NAME alone takes its value here, @FILE has one on each line; repeat for more")
	f.StringArrayVar(&p.passEnv, "pass-env", nil, "environment variable to pass on to the program; repeat for more")
	f.StringVar(&p.runAs, "run-as", "",
		"user to run the program as, or UID:GID (needs root); without it the program can read the data directory")
	f.StringVar(&p.sandbox, "sandbox", "",
		"confine the program (Linux): strict, or network if it opens connections, and, after commas, absolute paths that "+
			"it may read, or, after '+', write: strict,/srv/files,+/var/lib/notes")
	f.BoolVar(&p.shared, "shared", false, "use one process of the program for all callers")
	f.BoolVar(&p.json, "json", false, "print one JSON object when ready")
	return c
}

// checkFlags refuses meaningless flags, and flags without effect, because users might rely on them.
func (p *protection) checkFlags() error {
	switch {
	case !slices.Contains([]string{"", "optional", "required"}, p.dpop):
		return fmt.Errorf("--dpop: %q is not one of optional, required", p.dpop)
	case p.command && len(p.headers) > 0:
		return errors.New("--header is for an MCP server at a URL; for a program, use --env")
	case !p.command && (p.shared || p.runAs != "" || p.sandbox != "" || len(p.env)+len(p.passEnv) > 0):
		return errors.New("--env, --pass-env, --run-as, --sandbox and --shared are for a program after --; " +
			"for an MCP server at a URL, use --header")
	case p.sandbox != "":
		_, err := config.ParseSandbox(p.sandbox)
		return err
	}
	return nil
}

func (p *protection) run(ctx context.Context, s std) (err error) {
	l, err := installation.Listen(ctx, p.listen, "--listen")
	if err != nil {
		return err
	}
	defer l.Close()
	a, err := p.app(s, l.Addr())
	if err != nil {
		return err
	}
	if err := a.GuardKeys(); err != nil {
		return err
	}
	away, err := p.try(ctx, a)
	if err != nil {
		return err
	}
	if err := a.Create(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := a.rememberServed(ctx); err != nil {
		return err
	}
	server, err := a.Parts().Server(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	a.warnOfReach()
	cert, err := a.Parts().Certificate(ctx)
	if err != nil {
		return err
	}
	ready, err := p.people(ctx, a, server.Auth)
	if err != nil {
		return err
	}
	if away != nil {
		a.Log.Warn(away.Error() + ": until it does, requests to it are answered with an error")
	}
	if err := p.print(s, ready, away, &a.Config.Resources[0], a.Reach(&a.Config.Resources[0].Upstream)); err != nil {
		return err
	}
	// There is one listener, so its readiness includes the MCP server.
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", server.Readyz)
	mux.Handle("/", server.Handler())
	return server.Serve(ctx, authserver.Site{Listener: l, Handler: mux, GetCertificate: cert})
}

// app returns the configuration. It reads the environment, like serve, but no file, and fixes the
// settings from the command line.
func (p *protection) app(s std, addr net.Addr) (*app, error) {
	l, err := config.Load(config.Source{File: os.DevNull, Environ: s.environ})
	if err != nil {
		return nil, err
	}
	if l.Issuer, err = p.issuer(addr); err != nil {
		return nil, err
	}
	if l.DataDir = filepath.Join(l.DataDir, "protect"); p.data != "" {
		l.DataDir = p.data
		l.SetOrigin("data_dir", "--data")
	}
	r, err := newResource(l.Issuer+p.path, p.name, p.scopes)
	if err != nil {
		return nil, err
	}
	for _, name := range p.first {
		if err := markScope(&r, name, func(s *storage.ScopeText) { s.Default = true }); err != nil {
			return nil, fmt.Errorf("--default: %w", err)
		}
	}
	own := config.Resource{URI: l.Issuer + p.path, Name: r.Name, Scopes: r.Scopes, DPoP: p.dpop}
	if own.Tools, err = p.toolRules(); err != nil {
		return nil, err
	}
	u := &own.Upstream
	if u.PassEnv, u.User = p.passEnv, p.runAs; p.shared {
		u.Process = "shared"
	}
	if p.sandbox != "" {
		if u.Sandbox, err = config.ParseSandbox(p.sandbox); err != nil {
			return nil, err
		}
	}
	if err := p.secrets(u, s.environ); err != nil {
		return nil, err
	}
	if p.command {
		u.Command = p.upstream
	} else {
		u.URL = p.upstream[0]
	}
	l.Resources, l.File = []config.Resource{own}, "protect" // the source in error messages, because no file was read
	if p.user != "" {
		printedPassword(l)
	}
	l.Warnings = append(l.Warnings, p.exposed()...)
	return newApp(l, s)
}

// issuer returns our issuer. It can be guessed only on loopback.
func (p *protection) issuer(addr net.Addr) (string, error) {
	if !strings.HasPrefix(p.path, "/") {
		return "", fmt.Errorf("--path %q does not begin with a slash", p.path)
	}
	if p.url != "" {
		u, err := url.Parse(p.url)
		if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
			return "", fmt.Errorf(
				"--url %q is not an origin such as https://mcp.example.com; the path of the MCP server there is --path",
				p.url,
			)
		}
		return u.Scheme + "://" + u.Host, nil
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", fmt.Errorf(
			"it listens on %s: say how clients reach it, for instance --url https://mcp.example.com (by way of a TLS proxy), or listen on 127.0.0.1:%s",
			addr, port,
		)
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

func (p *protection) toolRules() (out []config.ToolRule, err error) {
	for _, t := range p.tools {
		name, scopes, ok := strings.Cut(t, "=")
		if !ok || name == "" || len(oauth.ParseScopes(scopes)) == 0 {
			return nil, fmt.Errorf("--tool %q is not of the form NAME=SCOPE", t)
		}
		out = append(out, config.ToolRule{Name: name, Scopes: oauth.ParseScopes(scopes)})
	}
	return out, nil
}

// people creates the first account, or the link to create it.
func (p *protection) people(ctx context.Context, a *app, as *authserver.Server) (out protected, err error) {
	out = protected{Issuer: as.Issuer(), MCPURL: a.Config.Resources[0].URI}
	if p.user != "" {
		password := secrets.Token("")[:16]
		_, err = as.Users().Create(ctx, p.user, password, true)
		switch {
		case errors.Is(err, users.ErrExists):
			out.Username = p.user // with the password printed at that time
			return out, nil
		case err != nil:
			return out, err
		}
		out.Username, out.Password = p.user, password
		return out, nil
	}
	out.SetupURL, err = a.SetupLink(ctx)
	if errors.Is(err, users.ErrExists) {
		err = nil
	}
	return out, err
}

const canReadKey = "WARNING: this program can read the server's key, and with it act as anyone here. " +
	"To prevent it: --sandbox strict (or network), or as root --run-as USER."

// print prints the addresses, after a warning about the program's access, if any.
func (p *protection) print(s std, r protected, away error, resource *config.Resource, reach []string) error {
	if p.json {
		return json.NewEncoder(s.out).Encode(r)
	}
	if len(reach) > 0 {
		fmt.Fprint(s.out, canReadKey+"\n\n")
	}
	state := "is protected."
	if away != nil {
		state = "will be protected, and is not ready yet: " + away.Error()
	}
	fmt.Fprintf(s.out, "%s %s\n\n  MCP URL    %s\n", strings.Join(p.upstream, " "), state, r.MCPURL)
	if resource.Name != resource.URI {
		fmt.Fprintf(s.out, "  name       %s\n", label.Printable(resource.Name))
	}
	p.policy(s.out, resource)
	switch {
	case r.Password != "":
		fmt.Fprintf(s.out, "  username   %s\n  password   %s   (not shown again)\n", r.Username, r.Password)
	case r.Username != "":
		fmt.Fprintf(s.out,
			"  username   %[1]s   (its password was printed when it was made; for another one: mcp-authd user passwd %[1]s --data %[2]s)\n",
			r.Username, p.dataDir(s))
	case r.SetupURL != "":
		fmt.Fprintf(s.out, "\nMake your account first (valid 1 h, once):\n\n  %s\n", r.SetupURL)
	}
	bound := ""
	if p.dpop == "required" {
		bound = "--dpop "
	}
	_, err := fmt.Fprintf(s.out, `
Then give the URL to any MCP client, for instance:

  claude mcp add --transport http protected %[1]s
  mcp-authd login %[3]s%[1]s

or, where servers are configured in a file:

  {"mcpServers": {"protected": {"type": "http", "url": "%[1]s"}}}

Further people get an account with: mcp-authd user add NAME --data %[2]s
Stop with Ctrl-C.
`, r.MCPURL, p.dataDir(s), bound)
	return err
}

func (p *protection) dataDir(s std) string {
	if p.data != "" {
		return p.data
	}
	l, err := config.Load(config.Source{File: os.DevNull, Environ: s.environ})
	if err != nil {
		return "DIR" // it was read just before
	}
	return filepath.Join(l.DataDir, "protect")
}
