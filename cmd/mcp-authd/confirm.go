package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// confirmation asks before a change that cannot be undone. Scripts have no terminal, and are not
// asked.
type confirmation struct{ yes bool }

func (y *confirmation) add(c *cobra.Command) {
	c.Flags().BoolVarP(&y.yes, "yes", "y", false, "do not ask for confirmation")
}

// ask returns an error unless the user confirms.
func (y *confirmation) ask(s std, consequence string) error {
	in, ok := s.in.(*os.File)
	if y.yes || !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	fmt.Fprintf(s.err, "%s\nGo on? [y/N] ", label.Printable(consequence))
	answer, err := bufio.NewReader(in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return errors.New("nothing was changed")
}

// liveGrants returns the grants that have not ended. Empty names match any.
func (a *app) liveGrants(ctx context.Context, userID, clientID, resource string) ([]storage.Grant, error) {
	all, err := whole(func(after string) ([]storage.Grant, string, error) {
		page, err := a.Store.ListGrants(ctx, userID, clientID, after, pageSize)
		if len(page) > 0 {
			after = page[len(page)-1].ID
		}
		return page, after, err
	})
	now, live := time.Now(), all[:0]
	for _, g := range all {
		if now.Before(g.ExpiresAt) && (resource == "" || g.Resource == resource) {
			live = append(live, g)
		}
	}
	return live, err
}

// ofPeople describes the number of grants and users.
func ofPeople(n admin.GrantCount) string {
	return atLeast(n, label.Count(n.Grants, "grant", "grants")+" of "+label.Count(n.People, "person", "people"))
}

// toApplications describes the number of grants and applications.
func toApplications(n admin.GrantCount) string {
	return atLeast(n, label.Count(n.Grants, "grant", "grants")+" to "+
		label.Count(n.Applications, "application", "applications"))
}

func atLeast(n admin.GrantCount, count string) string {
	switch {
	case n.More && n.Grants == 0:
		return "what there is"
	case n.More:
		return "at least " + count
	}
	return count
}
