package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newUserWays(s std) *cobra.Command {
	var asJSON bool
	list := storeCommand(s, &cobra.Command{
		Use: "ways NAME", Short: "List what lets a person into an account", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd user ways alice --json\n  mcp-authd user ways remove alice way_...",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			u, err := a.person(c.Context(), args[0])
			if err != nil {
				return err
			}
			all, err := a.waysOf(c.Context(), u)
			if err != nil {
				return err
			}
			return printWays(s, all, asJSON)
		})
	list.AddCommand(newUserWaysRemove(s))
	return list
}

// wayView is a way in as commands show it: a passkey, an app, the password, the recovery codes that are
// left, or an account at a provider.
type wayView struct {
	ID         string    `json:"id,omitempty"` // of a passkey or an app
	Kind       string    `json:"kind"`
	Name       string    `json:"name,omitempty"`
	RPID       string    `json:"rp_id,omitempty"`
	Works      bool      `json:"works"`          // at the issuer's host
	Left       int       `json:"left,omitempty"` // of recovery codes
	CreatedAt  time.Time `json:"created_at,omitzero"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
}

func (a *app) waysOf(ctx context.Context, u storage.User) ([]wayView, error) {
	w, err := a.ways()
	if err != nil {
		return nil, err
	}
	all, err := w.List(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	f, err := w.Factors(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	identities, err := a.store.Identities(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	out := make([]wayView, 0, len(all))
	for _, l := range all {
		out = append(out, wayView{
			ID: l.ID, Kind: string(l.Kind), Name: l.Name, RPID: l.RPID, Works: l.Works, CreatedAt: l.CreatedAt,
			LastUsedAt: l.LastUsedAt,
		})
	}
	if u.PasswordHash != "" {
		out = append(out, wayView{Kind: "password", Works: a.config.Login.Local})
	}
	if f.RecoveryCodes > 0 {
		out = append(out, wayView{Kind: "recovery", Works: true, Left: f.RecoveryCodes})
	}
	for _, i := range identities {
		is := func(c config.Connector) bool { return c.ID == i.Connector }
		out = append(out, wayView{
			Kind: "provider", Name: i.Connector + ": " + i.Label, Works: slices.ContainsFunc(a.config.ThirdParty, is),
			CreatedAt: i.CreatedAt, LastUsedAt: i.LastUsedAt,
		})
	}
	return out, nil
}

// ways returns the ways in, for commands that do not run the server.
func (a *app) ways() (*ways.Ways, error) {
	site, err := a.config.Site()
	if err != nil {
		return nil, fmt.Errorf("login.passkeys: %w", err)
	}
	ring, err := secrets.NewRing(a.keys...)
	if err != nil {
		return nil, err
	}
	return ways.New(ways.Config{
		Store: a.store, Ring: ring, Site: site, Passwords: a.config.Login.Local, Providers: a.config.ProviderIDs(),
		Audit: a.audit, Logger: a.log,
	})
}

func printWays(s std, all []wayView, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	t := newTable(s.out, "WAY", "KIND", "NAME", "STATE", "SINCE", "LAST USED")
	for _, w := range all {
		t.row(w.ID, w.Kind, w.Name, w.state(), w.since(), w.lastUsed())
	}
	return t.flush()
}

// since is empty for the password and recovery codes, of which that is not kept.
func (w wayView) since() string {
	if w.CreatedAt.IsZero() {
		return ""
	}
	return moment(w.CreatedAt)
}

// lastUsed is empty where since is.
func (w wayView) lastUsed() string {
	if w.CreatedAt.IsZero() {
		return ""
	}
	return moment(w.LastUsedAt)
}

// state is what is special about a way in.
func (w wayView) state() string {
	switch {
	case w.Kind == "recovery":
		return fmt.Sprint(w.Left, " left")
	case !w.Works && w.RPID != "":
		return "for " + w.RPID + ", not served"
	case !w.Works:
		return "not offered"
	case w.RPID != "":
		return "for " + w.RPID
	}
	return ""
}

func newUserWaysRemove(s std) *cobra.Command {
	var force bool
	return storeCommand(s, &cobra.Command{
		Use: "remove NAME WAY", Short: "Remove a passkey or an app of an account", Args: cobra.ExactArgs(2),
		Long: "Removes a passkey or an authenticator app, for instance of a phone that is lost. The last way in is\n" +
			"removed with --force alone: then the person needs another one from you, such as a password.",
		Example: "  mcp-authd user ways remove alice way_...",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&force, "force", false, "even if nothing else lets the person in")
	}, func(c *cobra.Command, a *app, args []string) error {
		u, err := a.person(c.Context(), args[0])
		if err != nil {
			return err
		}
		removed, err := a.removeWay(c.Context(), u, args[1], force)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "removed the %s %q of %s\n", removed.Kind, removed.Name, u.Name)
		return err
	})
}

// removeWay removes a way and tells its person.
func (a *app) removeWay(ctx context.Context, u storage.User, id string, force bool) (removed wayView, err error) {
	all, err := a.waysOf(ctx, u)
	if err != nil {
		return removed, err
	}
	if i := slices.IndexFunc(all, func(w wayView) bool { return w.ID == id }); i >= 0 && id != "" {
		removed = all[i]
	}
	w, err := a.ways()
	if err != nil {
		return removed, err
	}
	remove := func() error { return w.Remove(ctx, u.ID, id) }
	if force {
		remove = func() error { return a.store.TakeWay(ctx, u.ID, id) }
	}
	switch err := remove(); {
	case errors.Is(err, storage.ErrNotFound):
		return removed, fmt.Errorf("%s has no way in %q; see: mcp-authd user ways %s", u.Name, id, u.Name)
	case errors.Is(err, storage.ErrLast):
		return removed, fmt.Errorf("nothing else lets %s in: set a password first (mcp-authd user passwd %s), or use --force",
			u.Name, u.Name)
	case err != nil:
		return removed, err
	}
	notifier, err := a.tells()
	if err != nil {
		return removed, err
	}
	notifier.Tell(ctx, u.ID, notice.Change{Kind: notice.WayRemoved, Detail: removed.Name})
	return removed, nil
}

// resealApps seals the secrets of authenticator apps again under the present master key.
func (a *app) resealApps(ctx context.Context) (int, error) {
	ring, err := secrets.NewRing(a.keys...)
	if err != nil {
		return 0, err
	}
	return ways.Reseal(ctx, a.store, ring)
}
