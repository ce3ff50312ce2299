package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/demoserver"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// ready is the output of demo --json, printed once the demo is ready.
type ready struct {
	Issuer   string `json:"issuer"`
	MCPURL   string `json:"mcp_url"`
	Username string `json:"username"`
	Password string `json:"password"`
}

func newDemoCommand(s std) *cobra.Command {
	var address, data string
	var asJSON bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run the server with a protected demo MCP server and a demo user",
		Long: "Runs the authorization server and a protected MCP server in one process, with a user, and\n" +
			"needs no configuration. Without --data it leaves nothing behind.",
		Example: "  mcp-authd demo\n  mcp-authd demo --listen 127.0.0.1:0 --json\n  mcp-authd demo --data ./demo-data",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return demo(c.Context(), s, address, data, asJSON)
		},
	}
	c.Flags().StringVar(&address, "listen", "127.0.0.1:8414", "address on loopback; port 0 takes a free one")
	c.Flags().StringVar(&data, "data", "", "keep user, keys, clients and grants in this directory")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object when ready")
	return c
}

func demo(ctx context.Context, s std, address, data string, asJSON bool) (err error) {
	l, err := installation.Listen(ctx, address, "--listen")
	if err != nil {
		return err
	}
	defer l.Close()
	if data == "" {
		if data, err = os.MkdirTemp("", "mcp-authd-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	}
	a, err := demoApp(s, l.Addr(), data)
	if err != nil {
		return err
	}
	if err := a.GuardKeys(); err != nil {
		return err
	}
	if err := a.Create(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	server, err := a.Parts().Server(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	handler, err := demoHandler(server, a.Config.Resources[0].URI)
	if err != nil {
		return err
	}
	password, err := demoUser(ctx, server.Auth.Users(), data)
	if err != nil {
		return err
	}
	r := ready{server.Auth.Issuer(), a.Config.Resources[0].URI, demoName, password}
	if err := r.print(s, asJSON); err != nil {
		return err
	}
	return server.Serve(ctx, authserver.Site{Listener: l, Handler: handler})
}

// demoApp returns the configuration of the demo. It reads the environment, like serve, but no file,
// and fixes the settings that make it the demo.
func demoApp(s std, addr net.Addr, data string) (*app, error) {
	l, err := config.Load(config.Source{File: os.DevNull, Environ: s.environ})
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf(
			"the demo listens on loopback only, not on %s: its password is printed on the terminal; use --listen 127.0.0.1:%s",
			addr, port,
		)
	}
	l.Issuer = "http://" + net.JoinHostPort(host, port)
	l.DataDir, l.Database.URL, l.Clients = data, "", nil
	r := demoserver.Resource(l.Issuer + "/mcp")
	l.Resources = []config.Resource{{URI: r.URI, Name: r.Name, Scopes: r.Scopes}}
	printedPassword(l)
	return newApp(l, s)
}

// printedPassword lets the administrator sign in with the printed password, unless a second factor
// is configured as required. Programs sign in with it, and may have no user to enroll a factor.
func printedPassword(l *config.Loaded) {
	if l.IsDefault("login.admins_second_factor") {
		l.Login.AdminsSecondFactor = string(ways.Enrolled)
	}
}

// demoHandler serves the authorization server and the MCP server on one origin, where clients of
// MCP 2025-03-26 find both.
func demoHandler(server *assembly.Server, resource string) (http.Handler, error) {
	as := server.Auth
	g, err := mcpresource.New(mcpresource.Config{
		Resource: resource, AuthorizationServers: []string{as.Issuer()}, Validator: mcpresource.Local(as),
		Policy: demoserver.Rules(), Metadata: mcpresource.Metadata{Name: "Demo notebook"}, CORS: true,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	g.Register(mux, demoserver.Server(g))
	return server.Beside(mux), nil
}

const (
	demoName     = "demo"
	passwordFile = "demo-password"
)

// demoUser creates the demo user with a random password, which the data directory keeps for the
// next start.
func demoUser(ctx context.Context, u authserver.Users, data string) (password string, err error) {
	path, made := filepath.Join(data, passwordFile), false
	b, err := os.ReadFile(path)
	switch {
	case err == nil:
		password = strings.TrimSpace(string(b))
	case errors.Is(err, fs.ErrNotExist):
		password, made = secrets.Token("")[:16], true
		if err := secrets.WriteOnce(path, password+"\n"); err != nil {
			return "", err
		}
	default:
		return "", err
	}
	_, err = u.Create(ctx, demoName, password, true)
	if errors.Is(err, users.ErrExists) {
		if err = nil; made { // the file was removed, so nobody knows the earlier password
			err = u.SetPassword(ctx, demoName, password, true)
		}
	}
	return password, err
}

func (r ready) print(s std, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(s.out).Encode(r)
	}
	_, err := fmt.Fprintf(s.out, `A protected MCP server is ready.

  MCP URL    %[1]s
  username   %[2]s
  password   %[3]s

Give the URL to any MCP client, for instance:

  mcp-authd login %[1]s
  claude mcp add --transport http demo %[1]s
  npx @modelcontextprotocol/inspector

Your browser opens, you sign in and approve, and the client calls tools. The tool
add_note needs one more permission, so that you see a client ask for it, and you
have to approve each call of clear_notes.
Stop with Ctrl-C.
`, r.MCPURL, r.Username, r.Password)
	return err
}
