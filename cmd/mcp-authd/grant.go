package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newGrantCommand(s std) *cobra.Command {
	return group("grant", "Look at and end what people allowed", newGrantList(s),
		completing(s, (*app).grantIDs, newGrantShow(s)), completing(s, (*app).grantIDs, newGrantRevoke(s)),
		completing(s, (*app).grantIDs, newGrantNarrow(s)), completing(s, (*app).grantIDs, newGrantPause(s)),
		completing(s, (*app).grantIDs, newGrantResume(s)), newGrantFinish(s))
}

// selection says which grants are meant, by names or ids.
type selection struct{ user, client, resource string }

func (f *selection) add(s std, c *cobra.Command) {
	c.Flags().StringVar(&f.user, "user", "", "only of this user (name or id)")
	c.Flags().StringVar(&f.client, "client", "", "only to this client (name or id)")
	c.Flags().StringVar(&f.resource, "resource", "", "only for this MCP server (URL)")
	for flag, list := range map[string]lister{
		"user": (*app).userNames, "client": (*app).clientIDs, "resource": (*app).resourceURIs,
	} {
		_ = c.RegisterFlagCompletionFunc(flag, flagCompletion(s, list)) // the flag is there
	}
}

// find finds the records that the names mean. An unknown name is an error: an empty list would look
// like an answer.
func (f selection) find(ctx context.Context, a *app) (sel storage.Selection, err error) {
	if f.user != "" {
		u, err := a.person(ctx, f.user)
		if err != nil {
			return sel, err
		}
		sel.UserID = u.ID
	}
	if f.client != "" {
		c, err := a.namedClient(ctx, f.client)
		if err != nil {
			return sel, err
		}
		sel.ClientID = c.ID
	}
	if f.resource != "" {
		if sel.Resource, err = oauth.CanonicalResource(f.resource); err != nil {
			return sel, fmt.Errorf("--resource %q: %w", f.resource, err)
		}
	}
	return sel, nil
}

func newGrantList(s std) *cobra.Command {
	var which selection
	var asJSON, tree bool
	return storeCommand(s, &cobra.Command{
		Use: "list", Short: "List live grants", Args: cobra.NoArgs,
		Example: "  mcp-authd grant list --user alice\n  mcp-authd grant list --client Claude --json\n" +
			"  mcp-authd grant list --tree",
	}, func(c *cobra.Command) {
		which.add(s, c)
		c.Flags().BoolVar(&tree, "tree", false, "with the helpers to which clients have handed less than they have")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, _ []string) error {
		sel, err := which.find(c.Context(), a)
		if err != nil {
			return err
		}
		all, err := a.liveGrants(c.Context(), sel.UserID, sel.ClientID, sel.Resource)
		if err != nil {
			return err
		}
		views, err := a.viewGrants(c.Context(), all)
		if err != nil {
			return err
		}
		if tree {
			if err := a.addHelpers(c.Context(), views); err != nil {
				return err
			}
		}
		switch {
		case asJSON:
			return printJSON(s.out, views)
		case tree:
			return printTree(s, views)
		}
		return printGrants(s, views)
	})
}

func newGrantShow(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "show ID", Short: "Show one live grant", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd grant show grt_... --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			g, err := a.grant(c.Context(), args[0])
			if err != nil {
				return err
			}
			views, err := a.viewGrants(c.Context(), []storage.Grant{g})
			if err != nil {
				return err
			}
			if err := a.addHelpers(c.Context(), views); err != nil {
				return err
			}
			v := views[0]
			if asJSON {
				return printJSON(s.out, v)
			}
			printFields(s.out, "id", v.ID, "user", v.userText(), "client", v.clientText(), "client id",
				v.Client,
				"resource", v.Resource, "scope", v.Scope, "rests on", v.restsOn(), "since", moment(v.CreatedAt),
				"until", moment(v.ExpiresAt))
			if len(v.Helpers) == 0 {
				return nil
			}
			fmt.Fprintln(s.out)
			return printTree(s, views)
		})
}

func newGrantRevoke(s std) *cobra.Command {
	var many manyGrants
	var log pastLog
	var asJSON bool
	c := storeCommand(s, &cobra.Command{
		Use:   "revoke ID | HELPER | --user NAME | --client NAME | --resource URL | --provider ID | --all | --from-log FILE",
		Short: "End a grant, or those of a user, a client, an MCP server, a provider", Args: cobra.MaximumNArgs(1),
		Long: "Ends one grant by its id, one helper by its id (nod_..., see grant list --tree) with the helpers below it, or\n" +
			"all grants that match every flag, at once. For several it shows the number, asks on a\n" +
			"terminal, and then marks them as revoked for the status lists; if you interrupt it, access has ended all the same,\n" +
			"and a running server, or grant finish, completes the rest. With --from-log it repeats every revocation that a\n" +
			"server's JSON log has and the database lacks, as after a failover or a restored backup: grants, people, clients,\n" +
			"MCP servers, sessions at providers. It shows them and asks.",
		Example: "  mcp-authd grant revoke grt_...\n  mcp-authd grant revoke --user alice --client Claude\n  mcp-authd grant revoke --all --yes\n" +
			"  journalctl -u mcp-authd -o cat | mcp-authd grant revoke --from-log - --since 30m",
	}, func(c *cobra.Command) {
		many.add(s, c)
		log.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print what ended as JSON; for more than a thousand grants, what was cut")
	}, func(c *cobra.Command, a *app, args []string) error {
		if log.file != "" {
			return log.repeat(c.Context(), s, a, &many.sure, asJSON)
		}
		if len(args) == 0 {
			return many.end(c.Context(), s, a, asJSON)
		}
		if isHelper(args[0]) {
			return a.cutHelper(c.Context(), s, args[0], asJSON)
		}
		g, err := a.grant(c.Context(), args[0])
		if err != nil {
			return err
		}
		views, err := a.viewGrants(c.Context(), []storage.Grant{g})
		if err != nil {
			return err
		}
		if err := a.revokeGrant(c.Context(), g); err != nil {
			return err
		}
		return printRevoked(s, views, asJSON)
	})
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if err := log.check(many.check(len(args)), len(args) == 0 && many.none()); err != nil {
			return usageError{err, c.CommandPath()}
		}
		return nil
	}
	return c
}

func printRevoked(s std, views []grantView, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, views)
	}
	var out strings.Builder
	for _, v := range views {
		fmt.Fprintf(&out, "revoked %s (%s, %s)\n", v.ID, printable(v.holder()), v.Resource)
	}
	_, err := io.WriteString(s.out, out.String())
	return err
}

func (a *app) revokeGrant(ctx context.Context, g storage.Grant) error {
	if err := a.store.WithdrawGrant(ctx, g.ID, storage.ByOperator, time.Now()); err != nil {
		return err
	}
	a.recordRevoked(ctx, g)
	return nil
}

func (a *app) recordRevoked(ctx context.Context, g storage.Grant) {
	a.audit.Record(ctx, audit.GrantRevoked, audit.Grant(g), slog.String("client_id", g.ClientID))
}

// grant finds a grant that is not revoked by its id, or by the beginning that a table has
// left of it: who mistypes it in a hurry must not read that it is gone.
func (a *app) grant(ctx context.Context, id string) (storage.Grant, error) {
	none := fmt.Errorf("there is no live grant %q; see: mcp-authd grant list", id)
	start, wasCut := strings.CutSuffix(id, cutMark)
	if start == "" || wasCut && len(start) < 12 || strings.ContainsFunc(start, notInIDs) {
		return storage.Grant{}, none
	}
	// Two are enough to know whether it is one alone: they are the first from start on, since no id has a
	// character that sorts behind a tilde.
	last := len(start) - 1
	page, err := a.store.ListGrants(ctx, "", "", start[:last]+string(start[last]-1)+"~", 2)
	if err != nil {
		return storage.Grant{}, err
	}
	page = slices.DeleteFunc(page, func(g storage.Grant) bool {
		return g.ID != id && !(wasCut && strings.HasPrefix(g.ID, start))
	})
	if len(page) != 1 {
		return storage.Grant{}, none
	}
	return page[0], nil
}

func notInIDs(r rune) bool { return r <= ' ' || r >= '~' }

// grantView is a grant as commands show it.
type grantView struct {
	ID         string    `json:"id"`
	User       string    `json:"user"`
	UserName   string    `json:"user_name"`
	Client     string    `json:"client"`
	ClientName string    `json:"client_name"`
	ProgramKey bool      `json:"program_key,omitempty"` // the client is a key that the user made for a program
	Resource   string    `json:"resource"`
	Scope      string    `json:"scope"`
	Connector  string    `json:"connector,omitempty"` // on whose session it rests, and with which it ends
	Trust      string    `json:"trust,omitempty"`     // the trust entry whose issuer gave it by an assertion
	Session    string    `json:"provider_session,omitempty"`
	Upstream   string    `json:"upstream,omitempty"` // Session, under the name of the version before
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	PausedAt   time.Time `json:"paused_at,omitzero"`

	Helpers []helperView `json:"helpers,omitempty"` // of show, and of list --tree
}

func (a *app) viewGrants(ctx context.Context, all []storage.Grant) ([]grantView, error) {
	views := make([]grantView, 0, len(all))
	rest, names := foundations{a.store, map[string]string{}}, a.names()
	for _, g := range all {
		connector, err := rest.of(ctx, g)
		if err != nil {
			return nil, err
		}
		views = append(views, grantView{
			ID: g.ID, User: g.UserID, UserName: names.user(ctx, g.UserID), Client: g.ClientID,
			ClientName: names.client(ctx, g.ClientID), ProgramKey: g.ForProgram,
			Resource: g.Resource, Scope: g.Scopes.String(), Connector: connector, Trust: g.TrustID,
			Session: g.UpstreamID, Upstream: g.UpstreamID,
			CreatedAt: g.CreatedAt, ExpiresAt: g.ExpiresAt, PausedAt: g.PausedAt,
		})
	}
	return views, nil
}

// clientText is the name of the client, marked as a key where it is one.
func (v grantView) clientText() string {
	if v.ProgramKey {
		return v.ClientName + " (key for a program)"
	}
	return v.ClientName
}

// userText is the person; a workload that an assertion is about has none.
func (v grantView) userText() string {
	if v.User == "" {
		return ""
	}
	return v.UserName + " (" + v.User + ")"
}

// holder is who has the grant: the person and the client. A workload acts for no person.
func (v grantView) holder() string {
	if v.User == "" {
		return v.clientText()
	}
	return v.UserName + ", " + v.clientText()
}

// restsOn is what ends the grant with its own end: a connector, or a trust entry.
func (v grantView) restsOn() string {
	if v.Trust != "" {
		return "given by " + v.Trust
	}
	return v.Connector
}

func printGrants(s std, views []grantView) error {
	t := newTable(s.out, "ID", "USER", "CLIENT", "RESOURCE", "SCOPE", "RESTS ON", "SINCE")
	for _, v := range views {
		t.row(v.ID, v.UserName, v.clientText(), v.Resource, v.Scope, v.restsOn(), moment(v.CreatedAt))
	}
	return t.flush()
}

// foundations finds what grants rest on.
type foundations struct {
	store storage.Upstreams
	known map[string]string
}

// of returns the connector whose session a grant rests on: "" for none.
func (f *foundations) of(ctx context.Context, g storage.Grant) (string, error) {
	if g.UpstreamID == "" {
		return "", nil
	}
	if p, ok := f.known[g.UpstreamID]; ok {
		return p, nil
	}
	u, err := f.store.Upstream(ctx, g.UpstreamID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}
	f.known[g.UpstreamID] = u.Connector
	return u.Connector, nil
}
