package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newClientCommand(s std) *cobra.Command {
	named := func(c *cobra.Command) *cobra.Command { return completing(s, (*app).clientIDs, c) }
	return group("client", "Manage clients", newClientAdd(s), newClientList(s),
		named(newClientShow(s)), named(newClientRotateSecret(s)), named(newClientDelete(s)))
}

// clientView is a client as commands show it.
type clientView struct {
	ID           string    `json:"id"`
	Name         string    `json:"name,omitempty"`
	Source       string    `json:"source"`
	AuthMethod   string    `json:"auth_method"`
	JWKSURI      string    `json:"jwks_uri,omitempty"`
	RedirectURIs []string  `json:"redirect_uris,omitempty"`
	GrantTypes   []string  `json:"grant_types"`
	Scopes       []string  `json:"scopes,omitempty"`
	Resources    []string  `json:"resources,omitempty"`
	RequirePAR   bool      `json:"require_par,omitempty"`
	DPoP         bool      `json:"dpop_bound_access_tokens,omitempty"` // it gets no other tokens
	CreatedAt    time.Time `json:"created_at"`
	LastUsedAt   time.Time `json:"last_used_at,omitzero"`
	Secret       string    `json:"secret,omitempty"` // only in the answer to client add
	User         string    `json:"user,omitempty"`   // whose key for a program it is
	UserName     string    `json:"user_name,omitempty"`
}

func viewClient(c storage.Client) clientView {
	return clientView{
		ID: c.ID, Name: c.Name, Source: string(c.Source), AuthMethod: c.AuthMethod, JWKSURI: c.JWKSURI,
		RedirectURIs: c.RedirectURIs, GrantTypes: c.GrantTypes, Scopes: c.Scopes, Resources: c.Resources,
		RequirePAR: c.Demands().PushedRequests, DPoP: c.Demands().BoundTokens,
		CreatedAt: c.CreatedAt, LastUsedAt: c.LastUsedAt,
	}
}

// owned is viewClient that also says whose key for a program a client is, while that is good.
func (a *app) owned(ctx context.Context, c storage.Client, names *names) (clientView, error) {
	v := viewClient(c)
	if c.Source != storage.SourcePerson {
		return v, nil
	}
	v.GrantTypes = []string{oauth.GrantClientCredentials} // by its source
	grants, err := a.store.ListGrants(ctx, "", c.ID, "", 1)
	if len(grants) > 0 {
		v.User, v.UserName = grants[0].UserID, names.user(ctx, grants[0].UserID)
	}
	return v, err
}

// clientFlags describe a client to be added.
type clientFlags struct {
	spec    dcr.Spec
	scopes  []string
	keyFile string
	json    bool
}

func (f *clientFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.spec.ID, "id", "", "client id (default: random)")
	fl.StringVar(&f.spec.Name, "name", "", "name that people are shown")
	fl.StringArrayVar(&f.spec.RedirectURIs, "redirect-uri", nil, "redirect URI; repeat for more")
	fl.StringArrayVar(&f.spec.GrantTypes, "grant", nil,
		"grant type: authorization_code, refresh_token, client_credentials, device, jwt-bearer or token-exchange; "+
			"repeat for more")
	fl.StringVar(&f.spec.AuthMethod, "auth-method", "",
		"none, client_secret_basic, client_secret_post or private_key_jwt")
	fl.StringVar(&f.keyFile, "jwks", "", "file with the public keys of private_key_jwt, as a JSON Web Key Set")
	fl.StringVar(&f.spec.JWKSURI, "jwks-uri", "", "https URL at which they are published instead")
	fl.StringArrayVar(&f.scopes, "scope", nil, "scope that client credentials may have; or openid, to sign people in; repeat for more")
	fl.StringArrayVar(&f.spec.Resources, "resource", nil, "resource it may name and introspect for; repeat for more")
	fl.BoolVar(&f.spec.RequirePAR, "require-par", false, "its authorization requests have to be pushed (RFC 9126)")
	fl.BoolVar(&f.spec.DPoP, "dpop", false, "issue it no tokens but those that are bound to a key (RFC 9449)")
	fl.BoolVar(&f.json, "json", false, "print JSON")
}

// check wants to know something of the client.
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
	c := storeCommand(s, &cobra.Command{
		Use: "add", Short: "Create a client and print its id and secret, once",
		Long: "Creates a client of the operator. With redirect URIs it is for people who sign in; without, it\n" +
			"acts for itself with client credentials. The secret cannot be shown again.",
		Example: "  mcp-authd client add --name \"Our app\" --redirect-uri https://app.example.com/cb\n" +
			"  mcp-authd client add --name \"Our terminal\" --grant device --grant refresh_token\n" +
			"  mcp-authd client add --name Robot --grant client_credentials --jwks robot-keys.json\n" +
			"  mcp-authd client add --name Robot --grant client_credentials --resource https://mcp.example.com/mcp\n" +
			"  mcp-authd client add --name Assistant --grant jwt-bearer  # presents ID-JAGs, see: mcp-authd trust\n" +
			"  mcp-authd client add --name \"Notes server\" --grant client_credentials --resource https://mcp.example.com/mcp  # may introspect tokens for it",
		Args: cobra.NoArgs,
	}, f.add, func(c *cobra.Command, a *app, _ []string) error {
		client, secret, err := f.mint(a)
		if err != nil {
			return err
		}
		if err := a.addClient(c.Context(), client); err != nil {
			return err
		}
		return printClientSecret(s, client, secret, f.json)
	})
	c.PreRunE = f.check
	return c
}

// mint makes the client.
func (f *clientFlags) mint(a *app) (storage.Client, string, error) {
	f.spec.Scopes, f.spec.Now, f.spec.Redirects = f.scopes, time.Now(), assembly.RedirectPolicy(a.config)
	if f.keyFile != "" {
		keys, err := os.ReadFile(f.keyFile)
		if err != nil {
			return storage.Client{}, "", fmt.Errorf("--jwks: %w", err)
		}
		f.spec.JWKS = keys
	}
	client, secret, err := assembly.MintClient(f.spec, "")
	if err == nil && client.Scopes.Has(oauth.OpenID) && (!client.SignsIn() || len(client.RedirectURIs) == 0) {
		return client, "", errors.New("with the scope openid people sign in for the client, which has credentials: " +
			"give --redirect-uri, and --auth-method client_secret_basic or keys")
	}
	return client, secret, err
}

// addClient stores a new client.
func (a *app) addClient(ctx context.Context, client storage.Client) error {
	if err := a.checkReach(ctx, client); err != nil {
		return err
	}
	err := a.store.PutClient(ctx, client)
	if errors.Is(err, storage.ErrExists) {
		return fmt.Errorf("the client id %q is taken; choose another with --id", client.ID)
	}
	if err == nil {
		a.audit.Record(ctx, audit.ClientRegistered, audit.Client(client))
	}
	return err
}

// printClientSecret prints a secret that is not shown again. That it could not be is a failure.
func printClientSecret(s std, client storage.Client, secret string, asJSON bool) error {
	v := viewClient(client)
	if v.Secret = secret; asJSON {
		return printJSON(s.out, v)
	}
	text := "client_id      " + v.ID + "\n"
	if secret != "" {
		text += "client_secret  " + secret + "\n"
	}
	_, err := fmt.Fprint(s.out, text)
	return err
}

// checkReach refuses scopes that no MCP server has which the client may name, and warns of
// one that this installation does not know: it may be added later.
func (a *app) checkReach(ctx context.Context, c storage.Client) error {
	known, err := a.resources(ctx)
	if err != nil {
		return err
	}
	catalog, err := policy.NewCatalogue(known)
	if err != nil {
		return err
	}
	unknown, offered := unknownResources(catalog, c.Resources), offeredScopes(catalog, c.Resources)
	for _, u := range unknown {
		fmt.Fprintf(a.std.err,
			"mcp-authd: warning: %s is not known here, and gets no tokens until: mcp-authd resource add %s\n", u, u)
	}
	for _, scope := range oauth.Scopes(c.Scopes).Without(ownScopes) {
		switch {
		case offered.Has(scope):
		case len(unknown) == 0 && len(known) > 0:
			return fmt.Errorf(
				"no MCP server that this client may name has the scope %q; see: mcp-authd resource list", scope,
			)
		default:
			fmt.Fprintf(a.std.err, "mcp-authd: warning: the scope %q is not known here\n", scope)
		}
	}
	return nil
}

func newClientList(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "list", Short: "List clients", Args: cobra.NoArgs,
		Long:    "Lists the clients of the operator, from the configuration and the store,\nthose that have registered themselves and been approved by a person at least once,\nand the keys that people have made for programs.",
		Example: "  mcp-authd client list --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			all, err := a.clients(c.Context())
			if err != nil {
				return err
			}
			views, names := make([]clientView, 0, len(all)), a.names()
			for _, cl := range all {
				v, err := a.owned(c.Context(), cl, names)
				if err != nil {
					return err
				}
				views = append(views, v)
			}
			if asJSON {
				return printJSON(s.out, views)
			}
			t := newTable(s.out, "ID", "NAME", "SOURCE", "OF", "AUTH", "REDIRECTS")
			for _, v := range views {
				t.row(v.ID, v.Name, v.Source, v.UserName, v.AuthMethod, strings.Join(v.RedirectURIs, " "))
			}
			return t.flush()
		})
}

func newClientShow(s std) *cobra.Command {
	return storeCommand(s, &cobra.Command{
		Use: "show ID", Short: "Show one client as JSON",
		Example: "  mcp-authd client show mcp_...\n  mcp-authd client show Claude", Args: cobra.ExactArgs(1),
	}, func(c *cobra.Command) { c.Flags().Bool("json", true, "print JSON, as it always does") },
		func(c *cobra.Command, a *app, args []string) error {
			client, err := a.readClient(c.Context(), args[0])
			if err != nil {
				return err
			}
			v, err := a.owned(c.Context(), client, a.names())
			if err != nil {
				return err
			}
			return printJSON(s.out, v)
		})
}

// readClient finds a client, and reads its document if the server has not read it yet.
func (a *app) readClient(ctx context.Context, name string) (storage.Client, error) {
	c, err := a.client(ctx, name)
	if errors.Is(err, dcr.ErrUnread) {
		registry, failed := a.parts().Registry()
		if failed != nil {
			return c, failed
		}
		c, err = registry.Fetch(ctx, name)
	}
	var refused *oauth.Error
	if errors.As(err, &refused) {
		return c, errors.New(refused.Description)
	}
	return c, err
}
