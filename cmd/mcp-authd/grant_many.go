package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
)

// manyGrants are the flags that name many grants to end.
type manyGrants struct {
	selection
	provider string
	all      bool
	sure     confirmation
}

func (m *manyGrants) add(s std, c *cobra.Command) {
	m.selection.add(s, c)
	c.Flags().StringVar(&m.provider, "provider", "",
		"all that rest on sign-ins at this provider (connector id), with the sign-ins")
	c.Flags().BoolVar(&m.all, "all", false, "every grant there is")
	m.sure.add(c)
}

// none reports whether no kind is named.
func (m *manyGrants) none() bool { return m.selection == selection{} && m.provider == "" && !m.all }

// check returns an error unless one grant, or one kind of many, is named.
func (m *manyGrants) check(ids int) error {
	kinds := ids
	for _, named := range []bool{m.selection != selection{}, m.provider != "", m.all} {
		if named {
			kinds++
		}
	}
	if kinds != 1 {
		return errors.New(
			"name one grant by its id, or several with --user, --client or --resource, with --provider, or with --all",
		)
	}
	return nil
}

// end cuts them, tells what was ended, and follows the cut.
func (m *manyGrants) end(ctx context.Context, s std, a *app, asJSON bool) error {
	sel, err := m.find(ctx, a)
	if err != nil {
		return err
	}
	if err := a.knowsProvider(ctx, m.provider); err != nil {
		return err
	}
	sel.Connector, sel.All = m.provider, m.all
	some, consequence, err := m.meant(ctx, a, sel)
	if err != nil {
		return err
	}
	if err := m.sure.ask(s, consequence); err != nil {
		return err
	}
	views, err := a.viewGrants(ctx, some.list)
	if err != nil {
		return err
	}
	cut, err := a.store.CutGrants(ctx, sel, storage.ByOperator, time.Now())
	if err != nil {
		return err
	}
	if some.more {
		a.audit.Record(ctx, audit.GrantsRevoked, slog.String("user", sel.UserID),
			slog.String("client_id", sel.ClientID),
			slog.String("resource", sel.Resource), slog.String("connector", sel.Connector))
	}
	switch {
	case some.more && asJSON:
		err = printJSON(s.out, viewCut(cut))
	case some.more:
		_, err = fmt.Fprintf(s.out, "revoked: %s\n", some.ofPeople())
	default:
		for _, g := range some.list {
			a.audit.Record(ctx, audit.GrantRevoked, audit.Grant(g), slog.String("client_id", g.ClientID))
		}
		err = printRevoked(s, views, asJSON)
	}
	return errors.Join(err, a.followCuts(ctx))
}

// meant returns the grants as far as they are shown, and what their end means. What rests on a
// provider is not told apart before it is cut.
func (m *manyGrants) meant(
	ctx context.Context, a *app, sel storage.Selection,
) (some someGrants, consequence string, err error) {
	if sel.Connector != "" {
		return someGrants{more: true},
			fmt.Sprintf("This ends every grant and every sign-in that rests on the provider %s.", sel.Connector), nil
	}
	some, err = a.someGrants(ctx, sel)
	if err == nil && len(some.list) == 0 && !some.more {
		err = errors.New("there is no live grant of that kind; see: mcp-authd grant list")
	}
	return some, "This ends " + some.ofPeople() + ".", err
}

// knowsProvider is an error when a provider is neither configured nor has a session of a person, as one
// that was removed may have.
func (a *app) knowsProvider(ctx context.Context, id string) error {
	known := a.config.ProviderIDs()
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	sessions, err := pages(func(after string) ([]storage.Upstream, string, error) {
		page, err := a.store.ListUpstreams(ctx, after, pageSize)
		if len(page) > 0 {
			after = page[len(page)-1].ID
		}
		return page, after, err
	})
	if err != nil {
		return err
	}
	known = slices.Clone(known)
	for _, u := range sessions {
		if u.Connector == id {
			return nil
		}
		known = append(known, u.Connector)
	}
	slices.Sort(known)
	if known = slices.Compact(known); len(known) == 0 {
		return fmt.Errorf("there is no provider %q, and no other one", id)
	}
	return fmt.Errorf("there is no provider %q; there are: %s", id, strings.Join(known, ", "))
}
