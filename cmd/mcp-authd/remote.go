package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/mcpclient"
)

// Environment variables that name the server that runs a command, and the credentials.
const (
	envRemote       = "MCP_AUTHD_REMOTE"
	envToken        = "MCP_AUTHD_TOKEN"
	envClientID     = "MCP_AUTHD_CLIENT_ID"
	envClientSecret = "MCP_AUTHD_CLIENT_SECRET"
)

// elsewhere lets another server run a command. --remote or the environment names the server. Flags
// that select a local installation take precedence over the environment.
func elsewhere(s std, c *cobra.Command, run func(*cobra.Command, admin.Caller, []string) error) {
	var server string
	var person signInFlags
	c.Flags().StringVar(&server, "remote", "", "run the command on this server (default: $"+envRemote+")")
	person.add(c)
	for _, name := range []string{"remote", "device", "no-browser"} {
		_ = c.Flags().SetAnnotation(name, remoteFlag, []string{}) // the flag exists
	}
	c.MarkFlagsMutuallyExclusive("remote", "config")
	c.MarkFlagsMutuallyExclusive("remote", "data")
	here := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if server == "" && !c.Flags().Changed("config") && !c.Flags().Changed("data") {
			server = installation.Lookup(s.environ, envRemote)
		}
		if server == "" {
			return here(c, args)
		}
		by, err := remote(c.Context(), s, server, person)
		if err != nil {
			return err
		}
		return run(c, by, args)
	}
}

// remote returns the server at an issuer. It uses the credentials in the environment, or else the
// user who is signed in there.
func remote(ctx context.Context, s std, issuer string, person signInFlags) (admin.Caller, error) {
	environ := s.environ
	c := api.Credentials{ClientID: installation.Lookup(environ, envClientID)}
	var err error
	if c.Token, err = lookupSecret(environ, envToken); err != nil {
		return nil, err
	}
	if c.ClientSecret, err = lookupSecret(environ, envClientSecret); err != nil {
		return nil, err
	}
	if c.Token == "" && (c.ClientID == "" || c.ClientSecret == "") {
		user, err := person.person(s, issuer)
		if err != nil {
			return nil, fmt.Errorf("--remote: %w", err)
		}
		c.By = attended{user}
	}
	by, err := api.Connect(ctx, issuer, c)
	if err != nil {
		return nil, fmt.Errorf("--remote: %w", err)
	}
	return by, nil
}

// lookupSecret is lookup for a variable whose value may also be in the file named by the variable
// with _FILE. It refuses a file with permissions that are unsafe for a master key.
func lookupSecret(environ []string, name string) (string, error) {
	file := installation.Lookup(environ, name+"_FILE")
	if v := installation.Lookup(environ, name); v != "" || file == "" {
		return v, nil
	}
	e := secrets.Exposed(file, os.Getuid(), installation.Lookup(environ, "KUBERNETES_SERVICE_HOST") != "")
	if e.Wrong != "" && !e.Tolerate {
		return "", fmt.Errorf("$%s_FILE: %s is not secret: %s; see who had access, then: %s", name, file, e.Wrong, e.Remedy)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("$%s_FILE: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// signInFlags say how a user signs in at the server of --remote.
type signInFlags struct{ device, noBrowser bool }

func (f *signInFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.device, "device", false, "sign in with a code that you approve on another device")
	c.Flags().BoolVar(&f.noBrowser, "no-browser", false, "print the sign-in URL instead of opening a browser")
	c.MarkFlagsMutuallyExclusive("device", "no-browser")
}

// answerWithin is how long a server may take to start a response.
const answerWithin = time.Minute

// person returns the user who signs in at the server of an issuer.
func (f signInFlags) person(s std, issuer string) (*mcpclient.Person, error) {
	root, err := api.Root(issuer)
	if err != nil {
		return nil, err
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("the sign-in cannot be kept: %w", err)
	}
	next := http.DefaultTransport.(*http.Transport).Clone()
	next.ResponseHeaderTimeout = answerWithin
	return mcpclient.NewPerson(mcpclient.PersonConfig{
		Server:              root,
		ClientName:          "mcp-authd command line",
		AuthorizationServer: strings.TrimSuffix(issuer, "/"),
		Scopes:              []string{api.ScopeRead, api.ScopeWrite},
		Store:               mcpclient.FileStore(filepath.Join(dir, "mcp-authd", "remote")),
		ClientID:            installation.Lookup(s.environ, envClientID),
		Device:              f.device,
		Unattended:          f.unattended(s),
		OpenBrowser:         f.open,
		Ask:                 func(ctx context.Context, p mcpclient.Prompt) { fmt.Fprint(s.err, p) },
		Transport:           next,
	})
}

// open opens the browser, unless the user wants only the URL.
func (f signInFlags) open(ctx context.Context, url string) error {
	if f.noBrowser {
		return errNoBrowser
	}
	openBrowser(ctx, url)
	return nil
}

var errNoBrowser = errors.New("no browser is wanted")

var errNobody = errors.New("sign in at a terminal first, or with --device or --no-browser; programs set $" +
	envToken + ", or $" + envClientID + " and $" + envClientSecret + " (see docs/api.md)")

// unattended reports whether a script without a terminal runs, which should not wait for a sign-in.
func (f signInFlags) unattended(s std) bool {
	in, ok := s.in.(*os.File)
	return !f.device && !f.noBrowser && (!ok || !term.IsTerminal(int(in.Fd())))
}

// attended explains how a script gets past a sign-in.
type attended struct{ person *mcpclient.Person }

// RoundTrip implements http.RoundTripper.
func (a attended) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.person.RoundTrip(r)
	if errors.Is(err, mcpclient.ErrSignIn) {
		err = errNobody
	}
	return resp, err
}

func newLogoutCommand(s std) *cobra.Command {
	var server string
	var out answering
	c := &cobra.Command{
		Use:   "logout",
		Short: "Sign out the commands with --remote",
		Long: "Revokes the tokens that the server at the URL gave to the commands with --remote, and removes them\n" +
			"from this computer.",
		Example: "  mcp-authd logout --remote https://auth.example.com",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if server == "" {
				server = installation.Lookup(s.environ, envRemote)
			}
			if server == "" {
				return usageError{errors.New("say where: --remote URL"), c.CommandPath()}
			}
			person, err := signInFlags{}.person(s, server)
			if err != nil {
				return fmt.Errorf("--remote: %w", err)
			}
			was, err := person.SignOut(c.Context())
			if err != nil {
				return err
			}
			said := "signed out"
			if !was {
				said = "there was no sign-in at this server"
			}
			return out.print(s, map[string]bool{"signed_out": was}, "%s", said)
		},
	}
	c.Flags().StringVar(&server, "remote", "", "sign out at this server (default: $"+envRemote+")")
	out.add(c)
	return c
}
