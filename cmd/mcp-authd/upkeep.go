package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/storage/sqlite"
)

func newBackupCommand(s std) *cobra.Command {
	var where settings
	c := &cobra.Command{
		Use: "backup FILE", Short: "Copy the SQLite database while servers use it",
		Long: "Writes a copy of the SQLite database to a new file that only you can read. Keep it with the secret\n" +
			"key (" + keyFile + " in the data directory): without the key it is of no use. To restore, stop the server,\n" +
			"remove the files of the database that end in -wal and -shm, if a crash left them, and put the copy in\n" +
			"the place of the database. For PostgreSQL use pg_dump.",
		Example: "  mcp-authd backup /var/backups/mcp-authd-$(date +%F).db", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := where.load(s)
			switch {
			case err != nil:
				return err
			case a.config.Postgres():
				return errors.New("the database is PostgreSQL: back it up with pg_dump")
			}
			switch err := sqlite.Backup(c.Context(), a.config.SQLitePath(), args[0]); {
			case errors.Is(err, fs.ErrExist):
				return fmt.Errorf("%s exists already; choose another name", args[0])
			case errors.Is(err, fs.ErrNotExist):
				if _, missing := os.Stat(a.config.SQLitePath()); missing == nil {
					return fmt.Errorf("the directory of %s does not exist; make it first", args[0])
				}
				return fmt.Errorf("there is nothing to copy: %s does not exist; choose the installation with --data or --config", a.config.SQLitePath())
			case err != nil:
				return err
			}
			_, err = fmt.Fprintf(s.out, "copied %s to %s\n", a.config.SQLitePath(), args[0])
			return err
		},
	}
	where.add(c)
	return c
}

func newHealthcheckCommand(s std) *cobra.Command {
	var where settings
	c := &cobra.Command{
		Use: "healthcheck", Short: "Ask the running server whether it is ready; for containers", Args: cobra.NoArgs, Example: "  mcp-authd healthcheck",
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := where.load(s)
			if err != nil {
				return err
			}
			address, path := a.config.Management.Listen, "/readyz"
			if address == "" {
				if address = a.config.Listen; a.config.TLS.Cert != "" {
					return errors.New("set management.listen: the public listener speaks TLS for another name")
				}
				if issuer, err := url.Parse(a.config.Issuer); err == nil { // validated
					path = issuer.Path + path
				}
			}
			return checkReady(c.Context(), address, path)
		},
	}
	where.add(c)
	return c
}

// errNotReachable is a server that nobody can be asked at.
var errNotReachable = errors.New("not reachable")

func checkReady(ctx context.Context, address, path string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	at := "http://" + net.JoinHostPort(host, port) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s is %w: %s; is the server running, with this configuration?", at, errNotReachable, cause(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var body struct{ Status string }
		_ = json.NewDecoder(resp.Body).Decode(&body) // the status code says enough
		return fmt.Errorf("%s answered %s; the log of the server says why", at, strings.TrimSpace(resp.Status+" "+body.Status))
	}
	return nil
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  mcp-authd version",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "mcp-authd", version())
			return err
		},
	}
}

// version is the module version that the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
