package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
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
	c.Flags().StringVar(&server, "remote", "", "run the operation on the server at this URL (default: $"+envRemote+")")
	person.add(c)
	c.MarkFlagsMutuallyExclusive("remote", "config")
	c.MarkFlagsMutuallyExclusive("remote", "data")
	here := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if server == "" && !c.Flags().Changed("config") && !c.Flags().Changed("data") {
			server = lookup(s.environ, envRemote)
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
	c := api.Credentials{ClientID: lookup(environ, envClientID)}
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
	file := lookup(environ, name+"_FILE")
	if v := lookup(environ, name); v != "" || file == "" {
		return v, nil
	}
	e := secrets.Exposed(file, os.Getuid(), lookup(environ, "KUBERNETES_SERVICE_HOST") != "")
	if e.Wrong != "" && !e.Tolerate {
		return "", fmt.Errorf("$%s_FILE: %s is not secret: %s; see who had access, then: %s", name, file, e.Wrong, e.Remedy)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("$%s_FILE: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}
