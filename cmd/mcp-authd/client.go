package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newClientCommand(s std) *cobra.Command {
	named := func(c *cobra.Command) *cobra.Command { return completing(s, (*app).clientIDs, c) }
	return group("client", "Manage clients", newClientAdd(s), newClientList(s), newClientPolicy(s),
		named(newClientShow(s)), named(newClientRotateSecret(s)), named(newClientDelete(s)))
}

// clientFlags describe a client to add.
type clientFlags struct {
	in      admin.NewClient
	keyFile string
	json    bool
}

func (f *clientFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.in.ID, "id", "", "client id (default: random)")
	fl.StringVar(&f.in.Name, "name", "", "display name")
	fl.StringArrayVar(&f.in.RedirectURIs, "redirect-uri", nil, "redirect URI; repeat for more")
	fl.StringArrayVar(&f.in.GrantTypes, "grant", nil,
		"grant type: authorization_code, refresh_token, client_credentials, device, jwt-bearer or token-exchange; "+
			"repeat for more")
	fl.StringVar(&f.in.AuthMethod, "auth-method", "",
		"client authentication: none, client_secret_basic, client_secret_post or private_key_jwt")
	fl.StringVar(&f.keyFile, "jwks", "", "file with the public keys of private_key_jwt, as a JSON Web Key Set")
	fl.StringVar(&f.in.JWKSURI, "jwks-uri", "", "https URL of the key set, instead of --jwks")
	fl.StringArrayVar(&f.in.Scopes, "scope", nil, "scope for client credentials; or openid, to sign users in; repeat for more")
	fl.StringArrayVar(&f.in.Resources, "resource", nil, "MCP server that it may request tokens for and introspect for; repeat for more")
	fl.BoolVar(&f.in.RequirePAR, "require-par", false, "authorization requests must be pushed (RFC 9126)")
	fl.BoolVar(&f.in.DPoP, "dpop", false, "issue only tokens that are bound to a key (RFC 9449)")
	fl.BoolVar(&f.json, "json", false, "print JSON")
}

// check requires at least one flag that describes the client.
func (f *clientFlags) check(c *cobra.Command, _ []string) error {
	for _, flag := range []string{"name", "redirect-uri", "grant", "resource", "scope", "jwks", "jwks-uri", "id"} {
		if c.Flags().Changed(flag) {
			return nil
		}
	}
	return usageError{
		errors.New("say what the client is: --redirect-uri for people who sign in, or --grant client_credentials, and a --name"),
		c.CommandPath(),
	}
}

func newClientAdd(s std) *cobra.Command {
	var f clientFlags
	c := callerCommand(s, admin.ClientAdd, &cobra.Command{
		Example: "--name \"Our app\" --redirect-uri https://app.example.com/cb\n" +
			"--name \"Our terminal\" --grant device --grant refresh_token\n" +
			"--name Robot --grant client_credentials --jwks robot-keys.json\n" +
			"--name Robot --grant client_credentials --resource https://mcp.example.com/mcp\n" +
			"--name Assistant --grant jwt-bearer  # presents ID-JAGs, see: mcp-authd trust\n" +
			"--name \"Notes server\" --grant client_credentials --resource https://mcp.example.com/mcp  # may introspect tokens for it",
		Args: cobra.NoArgs,
	}, f.add, func(c *cobra.Command, by admin.Caller, _ []string) error {
		if err := f.readKeys(); err != nil {
			return err
		}
		made, err := admin.ClientAdd.Do(c.Context(), by, f.in)
		if err != nil {
			return err
		}
		for _, w := range made.Warnings {
			fmt.Fprintln(s.err, "mcp-authd: warning:", label.Printable(w))
		}
		return printClientSecret(s, made, f.json)
	})
	c.PreRunE = f.check
	return c
}

// readKeys reads the file with the client's keys.
func (f *clientFlags) readKeys() error {
	if f.keyFile == "" {
		return nil
	}
	keys, err := os.ReadFile(f.keyFile)
	if err == nil {
		err = json.Unmarshal(keys, &f.in.JWKS)
	}
	if err != nil {
		return fmt.Errorf("--jwks: %w", err)
	}
	return nil
}

// printClientSecret prints a secret that is not shown again. It returns an error if it cannot
// print.
func printClientSecret(s std, v admin.Client, asJSON bool) error {
	if v.Warnings = nil; asJSON {
		return printJSON(s.out, v)
	}
	text := "client_id      " + v.ID + "\n"
	if v.Secret != "" {
		text += "client_secret  " + v.Secret + "\n"
	}
	_, err := fmt.Fprint(s.out, text)
	return err
}

func newClientList(s std) *cobra.Command {
	var asJSON bool
	var match string
	return callerCommand(s, admin.ClientList, &cobra.Command{
		Args: cobra.NoArgs, Example: "--json\n--match claude",
	},
		func(c *cobra.Command) {
			c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
			matchFlag(c, &match, "name or ID")
		},
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.Client], error) {
				return admin.ClientList.Do(c.Context(), by, admin.Searched{Match: match, Paging: p})
			})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all)
			}
			t := newTable(s.out, "ID", "NAME", "SOURCE", "OF", "AUTH", "REDIRECTS")
			for _, v := range all {
				t.row(v.ID, v.Name, v.Source, v.UserName, v.AuthMethod, strings.Join(v.RedirectURIs, " "))
			}
			return t.flush()
		})
}

func newClientPolicy(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.ClientPolicyShow, &cobra.Command{Args: cobra.NoArgs, Example: "--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			p, err := admin.ClientPolicyShow.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, p)
			}
			yes := map[bool]string{true: "yes", false: "no"}
			printFields(s.out, "register themselves", yes[p.Registration], "without a secret", yes[p.Public],
				"without a person", yes[p.Machines], "by a document", yes[p.Documents])
			t := newTable(s.out, "DOCUMENTS AT", "TRUST", "KEY")
			for _, h := range p.Hosts {
				t.row(h.Pattern, h.Trust, h.Key)
			}
			return t.flush()
		})
}

func newClientShow(s std) *cobra.Command {
	return callerCommand(s, admin.ClientShow, &cobra.Command{
		Use: "ID", Example: "mcp_...\nClaude", Args: cobra.ExactArgs(1),
	}, func(c *cobra.Command) { c.Flags().Bool("json", true, "print JSON, as it always does") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			v, err := admin.ClientShow.Do(c.Context(), by, admin.ClientID{ID: args[0]})
			if err != nil {
				return err
			}
			return printJSON(s.out, v)
		})
}

func newClientRotateSecret(s std) *cobra.Command {
	var sure confirmation
	var asJSON bool
	return callerCommand(s, admin.ClientRotateSecret, &cobra.Command{
		Use: "ID", Args: cobra.ExactArgs(1), Example: "Robot --yes",
	}, func(c *cobra.Command) {
		sure.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		client, err := admin.ClientShow.Do(c.Context(), by, admin.ClientID{ID: args[0]})
		if err != nil {
			return err
		}
		if err := client.HasOwnSecret(); err != nil {
			return err
		}
		if err := sure.ask(s, fmt.Sprintf("This ends the present secret of the client %s.", client.ID)); err != nil {
			return err
		}
		changed, err := admin.ClientRotateSecret.Do(c.Context(), by, admin.ClientID{ID: client.ID})
		if err != nil {
			return err
		}
		return printClientSecret(s, changed, asJSON)
	})
}

func newClientDelete(s std) *cobra.Command {
	var sure confirmation
	var out answering
	return callerCommand(s, admin.ClientDelete, &cobra.Command{
		Use: "ID", SuggestFor: []string{"remove", "rm"}, Args: cobra.ExactArgs(1), Example: "mcp_...\nClaude --yes",
	}, flags(sure.add, out.add), func(c *cobra.Command, by admin.Caller, args []string) error {
		found, err := admin.GrantCounted.Do(c.Context(), by, admin.Which{Client: args[0]})
		if err != nil {
			return err
		}
		if err := sure.ask(s, fmt.Sprintf("This ends the client %s for good, with %s.",
			cmp.Or(found.ClientName, found.Client), ofPeople(found.GrantCount))); err != nil {
			return err
		}
		deleted, err := admin.ClientDelete.Do(c.Context(), by, admin.ClientID{ID: found.Client})
		if err != nil {
			return err
		}
		return out.print(s, deleted, "deleted %s; ended: %s", deleted.ID, ofPeople(deleted.Ended))
	})
}
