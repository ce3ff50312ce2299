package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newGrantNarrow(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "narrow ID [SCOPE...]", Short: "Leave a grant fewer permissions", Args: cobra.MinimumNArgs(1),
		Long: "Leaves a grant the scopes that you name, and no others but offline_access. Refreshes and\n" +
			"introspection say so at once; an access token " +
			"that a resource server checks by itself says more until it expires (tokens.access_ttl).",
		Example: "  mcp-authd grant narrow grt_... notes:read",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			to := oauth.Scopes(args[1:])
			return a.lessen(c.Context(), s, args[0], asJSON, "narrowed", audit.GrantNarrowed,
				func(ctx context.Context, g storage.Grant) error {
					err := a.store.NarrowGrant(ctx, g.UserID, g.ID, to, time.Now())
					if errors.Is(err, storage.ErrWider) {
						return fmt.Errorf("the grant has only %q: a grant can be left less, and not be given more", g.Scopes)
					}
					return err
				}, slog.String("scope", to.String()))
		})
}

func newGrantPause(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "pause ID", Short: "Have a grant give nothing until it is resumed", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd grant pause grt_...",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			return a.lessen(c.Context(), s, args[0], asJSON, "paused", audit.GrantPaused,
				func(ctx context.Context, g storage.Grant) error {
					return a.store.PauseGrant(ctx, g.UserID, g.ID, time.Now())
				})
		})
}

func newGrantResume(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "resume ID", Short: "End the pause of a grant", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd grant resume grt_...",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			return a.lessen(c.Context(), s, args[0], asJSON, "resumed", audit.GrantResumed,
				func(ctx context.Context, g storage.Grant) error {
					return a.store.ResumeGrant(ctx, g.UserID, g.ID, time.Now())
				})
		})
}

// lessen does something to one live grant, tells the log of a server, and prints what the grant is
// then.
func (a *app) lessen(
	ctx context.Context, s std, id string, asJSON bool, done, event string,
	do func(context.Context, storage.Grant) error, more ...slog.Attr,
) error {
	g, err := a.grant(ctx, id)
	if err != nil {
		return err
	}
	switch err := do(ctx, g); {
	case errors.Is(err, storage.ErrNotFound):
		return fmt.Errorf("the grant %s has ended, or its code was not redeemed", g.ID)
	case err != nil:
		return err
	}
	a.audit.Record(ctx, event, append(more, audit.Grant(g), slog.String("client_id", g.ClientID))...)
	if g, err = a.grant(ctx, g.ID); err != nil {
		return err
	}
	views, err := a.viewGrants(ctx, []storage.Grant{g})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(s.out, views[0])
	}
	_, err = fmt.Fprintf(s.out, "%s %s (%s, %s, %s): %s\n", done, g.ID, printable(views[0].UserName),
		printable(views[0].ClientName), g.Resource, views[0].Scope)
	return err
}

// stopped ends again everything of a person who did so, unless they have signed in since.
func (r *repetitions) stopped(ctx context.Context, l logged) error {
	live, err := r.a.liveGrants(ctx, l.User, "", "")
	for _, g := range live {
		if l.User != "" && g.CreatedAt.Before(l.cutAt()) {
			r.end(ctx, l, g, storage.ByPerson)
		}
	}
	return err
}

// lessened tells of a grant that a person has left less, or paused, where the database has not.
func (r *repetitions) lessened(ctx context.Context, l logged) error {
	c, err := r.a.store.Connection(ctx, l.User, l.Grant, r.a.parts().Now())
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	switch {
	case err != nil:
		return err
	case audit.Current(l.Event) == audit.GrantPaused && c.PausedAt.IsZero():
		r.byHand("grant %s was paused at %s: if it should be, run: mcp-authd grant pause %[1]s", l.Grant, moment(l.when()))
	case audit.Current(l.Event) == audit.GrantNarrowed && len(c.Scopes.Without(oauth.ParseScopes(l.Scope))) > 0:
		r.byHand("grant %s was narrowed at %s: to do so again, run: mcp-authd grant narrow %[1]s %[3]s", l.Grant,
			moment(l.when()), l.Scope)
	}
	return nil
}
