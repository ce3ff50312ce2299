package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
)

func newGrantCommand(s std) *cobra.Command {
	var user, client string
	var asJSON bool
	list := storeCommand(s, &cobra.Command{Use: "list", Short: "List live grants", Args: cobra.NoArgs, Example: "  mcp-authd grant list --user usr_... --json"},
		func(c *cobra.Command) {
			c.Flags().StringVar(&user, "user", "", "only of this user id")
			c.Flags().StringVar(&client, "client", "", "only of this client id")
			c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
		}, func(c *cobra.Command, a *app, _ []string) error {
			all, err := pages(func(after string) ([]storage.Grant, string, error) {
				page, err := a.store.ListGrants(c.Context(), user, client, after, pageSize)
				if len(page) > 0 {
					after = page[len(page)-1].ID
				}
				return page, after, err
			})
			if err != nil {
				return err
			}
			return printGrants(c.Context(), s, a.store, all, asJSON)
		})
	revoke := storeCommand(s, &cobra.Command{Use: "revoke ID", Short: "End a grant", Args: cobra.ExactArgs(1), Example: "  mcp-authd grant revoke grt_..."},
		nil, func(c *cobra.Command, a *app, args []string) error {
			live, err := a.grantIsLive(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.store.RevokeGrant(c.Context(), args[0], time.Now()); err != nil {
				return err
			}
			if !live {
				return fmt.Errorf("there is no live grant %q; see: mcp-authd grant list", args[0])
			}
			a.audit.Record(c.Context(), audit.GrantRevoked, slog.String("grant", args[0]), slog.String("by", "operator"))
			_, err = fmt.Fprintf(s.out, "revoked %s\n", args[0])
			return err
		})
	return group("grant", "Look at and end what people allowed", list, revoke)
}

// grantIsLive reports whether there is a grant to revoke: who mistypes its id in a hurry
// must not read that it is gone.
func (a *app) grantIsLive(ctx context.Context, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	// Ids are random: the first one after all but its last character is it.
	page, err := a.store.ListGrants(ctx, "", "", id[:len(id)-1], 1)
	return len(page) > 0 && page[0].ID == id, err
}

// grantView is a grant as commands show it.
type grantView struct {
	ID        string    `json:"id"`
	User      string    `json:"user"`
	Client    string    `json:"client"`
	Resource  string    `json:"resource"`
	Scope     string    `json:"scope"`
	Connector string    `json:"connector,omitempty"` // on whose session it rests, and with which it ends
	Upstream  string    `json:"upstream,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

func printGrants(ctx context.Context, s std, store storage.Upstreams, all []storage.Grant, asJSON bool) error {
	views := make([]grantView, 0, len(all))
	rest := foundations{store, map[string]string{}}
	for _, g := range all {
		connector, err := rest.of(ctx, g)
		if err != nil {
			return err
		}
		views = append(views, grantView{g.ID, g.UserID, g.ClientID, g.Resource, g.Scopes.String(), connector, g.UpstreamID, g.CreatedAt, g.ExpiresAt})
	}
	if asJSON {
		return printJSON(s.out, views)
	}
	t := newTable(s.out, "ID", "USER", "CLIENT", "RESOURCE", "SCOPE", "RESTS ON", "SINCE")
	for _, v := range views {
		t.row(v.ID, v.User, v.Client, v.Resource, v.Scope, v.Connector, v.CreatedAt.Format(time.RFC3339))
	}
	return t.flush()
}

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

func newConfigCommand(s std) *cobra.Command {
	var whereValidate, wherePrint settings
	var origin, asJSON bool
	validate := &cobra.Command{
		Use: "validate", Short: "Check the configuration", Args: cobra.NoArgs, Example: "  mcp-authd config validate --config mcp-authd.yaml",
		RunE: func(*cobra.Command, []string) error {
			a, err := whereValidate.load(s)
			if err != nil {
				return err
			}
			if _, err := a.configuredClients(); err != nil {
				return err
			}
			if a.config.SecretKey != "" { // else it is none of this file's business
				if err := a.loadKeys(a.keptKey); err != nil {
					return err
				}
			}
			file := a.config.File
			if file == "" {
				file = "no file, defaults and environment"
			}
			_, err = fmt.Fprintf(s.out, "the configuration is valid (%s)\n", file)
			return err
		},
	}
	show := &cobra.Command{
		Use: "print", Short: "Print every setting, secrets masked", Args: cobra.NoArgs, Example: "  mcp-authd config print --origin",
		RunE: func(*cobra.Command, []string) error {
			a, err := wherePrint.load(s)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, a.config.Values())
			}
			a.config.Print(s.out, origin)
			return nil
		},
	}
	whereValidate.add(validate)
	wherePrint.add(show)
	show.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	show.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return group("config", "Check and print the configuration", validate, show)
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
