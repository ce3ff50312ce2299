package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

// manyGrants holds the flags that select many grants to revoke.
type manyGrants struct {
	selection
	provider string
	all      bool
	sure     confirmation
}

func (m *manyGrants) add(s std, c *cobra.Command) {
	m.selection.add(s, c)
	c.Flags().StringVar(&m.provider, "provider", "",
		"all grants from sign-ins at this provider (connector id), and the sign-ins")
	c.Flags().BoolVar(&m.all, "all", false, "every grant")
	m.sure.add(c)
}

// none reports whether no selection is given.
func (m *manyGrants) none() bool { return m.selection == selection{} && m.provider == "" && !m.all }

// check returns an error unless one grant, or one selection of many, is given.
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

// end revokes the grants, and prints the result.
func (m *manyGrants) end(ctx context.Context, s std, by admin.Caller, asJSON bool) error {
	which := admin.GrantsToEnd{Which: m.which(), Provider: m.provider, All: m.all}
	consequence := fmt.Sprintf("This ends every grant and every sign-in that rests on the provider %s.", m.provider)
	if m.provider == "" {
		found, err := admin.GrantCounted.Do(ctx, by, which.Which)
		if err != nil {
			return err
		}
		consequence = "This ends " + ofPeople(found.GrantCount) + "."
		if found.Pauses > 0 {
			consequence += " It also ends " + label.Count(found.Pauses, "pause", "pauses") + "."
		}
		if found.Grants == 0 && !found.More && found.Pauses == 0 {
			return errors.New("there is no live grant of that kind; see: mcp-authd grant list")
		}
	}
	if err := m.sure.ask(s, consequence); err != nil {
		return err
	}
	ended, err := admin.GrantRevokeMany.Do(ctx, by, which)
	switch {
	case err != nil:
		return err
	case ended.Cut != nil && asJSON:
		return printJSON(s.out, ended.Cut)
	case ended.Cut != nil:
		_, err = fmt.Fprintf(s.out, "revoked: %s\n", ofPeople(ended.GrantCount))
		return err
	}
	if err := printRevoked(s, ended.Items, asJSON); err != nil || asJSON || ended.Pauses == 0 {
		return err
	}
	_, err = fmt.Fprintf(s.out, "ended: %s\n", label.Count(ended.Pauses, "pause", "pauses"))
	return err
}
