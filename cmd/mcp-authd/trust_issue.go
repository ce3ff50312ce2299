package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newTrustIssue(s std) *cobra.Command {
	return group("issue", "Manage the authorization servers to which this one asserts who people are",
		newTrustIssueAdd(s), newTrustIssueList(s), newTrustIssueRemove(s))
}

// audienceView is an audience as commands show it.
type audienceView struct {
	Issuer    string                   `json:"audience"`
	Resources []string                 `json:"resources"`
	Scopes    []string                 `json:"scopes"`
	Clients   []storage.AudienceClient `json:"clients"`
	Mail      bool                     `json:"mail"`
	MaxAge    storage.Age              `json:"max_age,omitempty"`
	CreatedAt time.Time                `json:"created_at"`
}

func viewAudience(a storage.Audience) audienceView {
	return audienceView{
		Issuer:    a.Issuer,
		Resources: a.Resources,
		Scopes:    a.Scopes,
		Clients:   a.Clients,
		Mail:      a.Mail,
		MaxAge:    a.MaxAge,
		CreatedAt: a.CreatedAt,
	}
}

// audienceFlags describe an audience to be added.
type audienceFlags struct {
	resources, scopes, clients []string
	mail                       bool
	maxAge                     time.Duration
	json                       bool
}

func (f *audienceFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.resources, "resource", nil, "MCP server there that may be named; repeat for more")
	fl.StringArrayVar(&f.scopes, "scope", nil, "scope that may be asked for there; repeat for more")
	fl.StringArrayVar(&f.clients, "client", nil,
		"client that may have assertions and, after '=', its id at the audience (default: the same); repeat for more")
	fl.BoolVar(&f.mail, "email", false, "assert where the person gets mail")
	fl.DurationVar(&f.maxAge, "max-age", 0, "how long ago the person must have signed in at most (default: any time)")
	fl.BoolVar(&f.json, "json", false, "print the audience as JSON")
}

func newTrustIssueAdd(s std) *cobra.Command {
	var f audienceFlags
	return storeCommand(s, &cobra.Command{
		Use: "add AUDIENCE", Short: "Add an authorization server, by its issuer", Args: cobra.ExactArgs(1),
		Long: "Lets clients exchange the sign-ins of people here for assertions of who they are (ID-JAG), which\n" +
			"the authorization server AUDIENCE redeems if it trusts this one. A client is added with:\n" +
			"mcp-authd client add --scope openid --auth-method client_secret_basic --redirect-uri URL",
		Example: "  mcp-authd trust issue add https://as.partner.example --resource https://mcp.partner.example/mcp \\\n" +
			"    --scope read --client desk=desk-at-partner --max-age 12h",
	}, f.add, func(c *cobra.Command, a *app, args []string) error {
		audience, err := f.audience(args[0])
		if err == nil {
			err = a.checkAudience(c.Context(), audience)
		}
		if err == nil {
			err = a.store.AddAudience(c.Context(), audience)
		}
		if errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("%s is there already; to change it: mcp-authd trust issue remove %s, and add it again",
				audience.Issuer, audience.Issuer)
		}
		if err != nil {
			return err
		}
		a.audit.Record(c.Context(), audit.AudienceChanged, slog.String("audience", audience.Issuer),
			slog.String("what", "added"))
		if f.json {
			return printJSON(s.out, viewAudience(audience))
		}
		_, err = fmt.Fprintf(s.out, "added %s\n", audience.Issuer)
		return err
	})
}

// audience is what the flags describe.
func (f *audienceFlags) audience(issuer string) (a storage.Audience, err error) {
	if err := metadata.ValidateIssuer(strings.TrimSuffix(issuer, "/")); err != nil {
		return a, fmt.Errorf("%q is no issuer: %w", issuer, err)
	}
	a = storage.Audience{
		Issuer:    issuer,
		Scopes:    f.scopes,
		Mail:      f.mail,
		MaxAge:    storage.Age(f.maxAge),
		CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	switch {
	case len(f.resources) == 0 || len(f.scopes) == 0 || len(f.clients) == 0:
		return a, errors.New("say what may be asserted to whom: --resource, --scope and --client, each once at least")
	case f.maxAge < 0:
		return a, errors.New("--max-age is not negative")
	}
	for _, raw := range f.resources {
		uri, err := oauth.CanonicalResource(raw)
		if err != nil {
			return a, fmt.Errorf("--resource %s: %w", raw, err)
		}
		a.Resources = append(a.Resources, uri)
	}
	for _, scope := range f.scopes {
		if !oauth.ValidScope(scope) {
			return a, fmt.Errorf("%q is not a scope: no spaces, quotes or backslashes", scope)
		}
	}
	for _, pair := range f.clients {
		id, there, mapped := strings.Cut(pair, "=")
		if !mapped {
			there = id
		}
		if id == "" || there == "" {
			return a, fmt.Errorf("--client %s: it is ID or ID=ID-AT-THE-AUDIENCE", pair)
		}
		if _, twice := a.Client(id); twice {
			return a, fmt.Errorf("--client %s is there twice", id)
		}
		a.Clients = append(a.Clients, storage.AudienceClient{ID: id, There: there})
	}
	return a, nil
}

// checkAudience refuses this server itself, and clients that people cannot sign in for.
func (a *app) checkAudience(ctx context.Context, audience storage.Audience) error {
	if sameIssuer(audience.Issuer, a.config.Issuer) {
		return fmt.Errorf("%s is this server: what it asserts is for others to redeem", audience.Issuer)
	}
	for _, c := range audience.Clients {
		client, err := a.readClient(ctx, c.ID)
		if err != nil {
			return err
		}
		if !client.SignsIn() {
			return fmt.Errorf("people cannot sign in for the client %q: it needs the scope openid and credentials: "+
				"mcp-authd client add --scope openid --auth-method client_secret_basic --redirect-uri URL", c.ID)
		}
	}
	return nil
}

// sameIssuer reports whether two issuers differ by a slash at their end at most.
func sameIssuer(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && strings.EqualFold(ua.Host, ub.Host) &&
		strings.TrimSuffix(ua.Path, "/") == strings.TrimSuffix(ub.Path, "/")
}

func newTrustIssueList(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "list", Short: "List the authorization servers to which this one asserts who people are",
		Example: "  mcp-authd trust issue list --json", Args: cobra.NoArgs,
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			all, err := a.store.ListAudiences(c.Context())
			if err != nil {
				return err
			}
			views := make([]audienceView, 0, len(all))
			for _, audience := range all {
				views = append(views, viewAudience(audience))
			}
			if asJSON {
				return printJSON(s.out, views)
			}
			t := newTable(s.out, "AUDIENCE", "RESOURCES", "SCOPES", "CLIENTS")
			for _, v := range views {
				var clients []string
				for _, c := range v.Clients {
					clients = append(clients, c.ID)
				}
				slices.Sort(clients)
				t.row(v.Issuer, strings.Join(v.Resources, " "), strings.Join(v.Scopes, " "), strings.Join(clients, " "))
			}
			return t.flush()
		})
}

func newTrustIssueRemove(s std) *cobra.Command {
	return storeCommand(s, &cobra.Command{
		Use: "remove AUDIENCE", SuggestFor: []string{"delete", "rm"}, Args: cobra.ExactArgs(1),
		Short: "Assert nothing to an authorization server any more",
		Long: "Assertions that were issued live for five minutes at most. What they were redeemed for is ended\n" +
			"where they were redeemed.",
		Example: "  mcp-authd trust issue remove https://as.partner.example",
	}, func(*cobra.Command) {}, func(c *cobra.Command, a *app, args []string) error {
		err := a.store.RemoveAudience(c.Context(), args[0])
		if errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("there is no audience %s; see: mcp-authd trust issue list", args[0])
		}
		if err != nil {
			return err
		}
		a.audit.Record(c.Context(), audit.AudienceChanged, slog.String("audience", args[0]),
			slog.String("what", "removed"))
		_, err = fmt.Fprintf(s.out, "removed %s\n", args[0])
		return err
	})
}
