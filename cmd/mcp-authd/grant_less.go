package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func newGrantNarrow(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.GrantNarrow, &cobra.Command{
		Use: "ID [SCOPE...]", Args: cobra.MinimumNArgs(1), Example: "grt_... notes:read",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			g, err := admin.GrantNarrow.Do(c.Context(), by, admin.LessGrant{ID: args[0], Scopes: args[1:]})
			return printLess(s, "narrowed", g, err, asJSON)
		})
}

func newGrantPause(s std) *cobra.Command {
	return newGrantSwitch(s, "paused", admin.GrantPause)
}

func newGrantResume(s std) *cobra.Command {
	c := newGrantSwitch(s, "resumed", admin.GrantResume)
	c.Use, c.Example = "resume ID | PAUSE", "  mcp-authd grant resume grt_...\n  mcp-authd grant resume pau_..."
	return c
}

func newGrantPauses(s std) *cobra.Command {
	var user string
	var asJSON bool
	return callerCommand(s, admin.GrantPauses, &cobra.Command{Args: cobra.NoArgs, Example: "--user alice"},
		func(c *cobra.Command) {
			c.Flags().StringVar(&user, "user", "", "the user (name or id)")
			c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
			_ = c.MarkFlagRequired("user") // the flag exists
			_ = c.RegisterFlagCompletionFunc("user", flagCompletion(s, (*app).userNames))
		}, func(c *cobra.Command, by admin.Caller, _ []string) error {
			page, err := admin.GrantPauses.Do(c.Context(), by, admin.PausesWanted{User: user})
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(s.out, page.Items)
			}
			t := newTable(s.out, "ID", "USER", "CLIENT", "RESOURCE", "SINCE")
			for _, p := range page.Items {
				t.row(p.ID, p.UserName, p.ClientName, p.Resource, label.Moment(p.PausedAt))
			}
			return t.flush()
		})
}

func newGrantSwitch(s std, done string, change admin.Operation[admin.GrantID, admin.Grant]) *cobra.Command {
	var asJSON bool
	return callerCommand(s, change, &cobra.Command{Use: "ID", Args: cobra.ExactArgs(1), Example: "grt_..."},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			if done == "resumed" && isPause(args[0]) {
				return endPause(c.Context(), s, by, args[0], asJSON)
			}
			g, err := change.Do(c.Context(), by, admin.GrantID{ID: args[0]})
			return printLess(s, done, g, err, asJSON)
		})
}

// isPause reports whether an ID belongs to a pause, which may have outlived its grants.
func isPause(id string) bool { return strings.HasPrefix(id, "pau_") }

func endPause(ctx context.Context, s std, by admin.Caller, id string, asJSON bool) error {
	p, err := admin.PauseEnd.Do(ctx, by, admin.PauseID{ID: id})
	switch {
	case err != nil:
		return err
	case asJSON:
		return printJSON(s.out, p)
	}
	_, err = fmt.Fprintf(s.out, "resumed %s (%s, %s, %s)\n", p.ID, label.Printable(p.UserName),
		label.Printable(p.ClientName), p.Resource)
	return err
}

// printLess prints a reduced grant.
func printLess(s std, done string, g admin.Grant, err error, asJSON bool) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return printJSON(s.out, g)
	}
	_, err = fmt.Fprintf(s.out, "%s %s (%s, %s, %s): %s\n", done, g.ID, label.Printable(g.UserName),
		label.Printable(g.ClientName), g.Resource, g.Scope)
	return err
}

// stopped repeats a user's revocation of everything, unless they have signed in since.
func (r *repetitions) stopped(ctx context.Context, l logged) error {
	live, err := r.a.liveGrants(ctx, l.User, "", "")
	for _, g := range live {
		if l.User != "" && g.CreatedAt.Before(l.cutAt()) {
			r.end(ctx, l, g, storage.ByPerson)
		}
	}
	return err
}

// lessened reports a grant that a user has reduced or paused, if the database does not contain
// that.
func (r *repetitions) lessened(ctx context.Context, l logged) error {
	c, err := r.a.Store.Connection(ctx, l.User, l.Grant, r.a.Parts().Now())
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	switch {
	case err != nil:
		return err
	case audit.Current(l.Event) == audit.GrantPaused && c.PausedAt.IsZero():
		r.byHand("grant %s was paused at %s: if it should be, run: mcp-authd grant pause %[1]s", l.Grant, label.Moment(l.when()))
	case audit.Current(l.Event) == audit.GrantNarrowed && len(c.Scopes.Without(oauth.ParseScopes(l.Scope))) > 0:
		r.byHand("grant %s was narrowed at %s: to do so again, run: mcp-authd grant narrow %[1]s %[3]s", l.Grant,
			label.Moment(l.when()), l.Scope)
	}
	return nil
}
