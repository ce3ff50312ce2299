package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	cutBatch = 5000
	// tellEvery is how often an operator who waits is told how far it is.
	tellEvery = time.Second
)

// followCuts marks the grants of what was cut as a whole, batch by batch, also of cuts that an
// earlier command has left, and says how far it is. A cut has taken effect before; what waits
// for the marks are the status lists. Of one that is left, a server or the next command goes on.
func (a *app) followCuts(ctx context.Context) error {
	// one that is interrupted says what is left
	cuts, err := a.store.PendingCuts(context.WithoutCancel(ctx), time.Now())
	if err != nil {
		return err
	}
	for _, c := range cuts {
		if err := a.followCut(ctx, c); err != nil {
			return fmt.Errorf(
				"%w; access has ended, and %s marked as revoked for the status lists: a running server goes on, or: mcp-authd grant finish",
				err, marked(c.Grants))
		}
	}
	return nil
}

func (a *app) followCut(ctx context.Context, c storage.Cut) error {
	told := time.Now()
	for {
		step, err := a.store.FollowCut(ctx, c.ID, time.Now(), cutBatch)
		switch {
		case errors.Is(err, storage.ErrNotFound): // a server has ended it
			return nil
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil:
			return err
		case step.Done:
			a.audit.Record(ctx, audit.GrantsRevoked, audit.Cut(step))
			if step.Grants >= cutBatch {
				fmt.Fprintf(a.std.err, "mcp-authd: %s marked as revoked\n", marked(step.Grants))
			}
			return nil
		}
		if time.Since(told) >= tellEvery {
			told = time.Now()
			fmt.Fprintf(a.std.err, "mcp-authd: access has ended; %s marked as revoked so far\n", marked(step.Grants))
		}
	}
}

// unfinished adds to the error of a command that does not find what it was to end what is to be
// done when an earlier one was interrupted there.
func (a *app) unfinished(ctx context.Context, err error, like func(storage.Cut) bool) error {
	cuts, unread := a.store.PendingCuts(ctx, time.Now())
	if unread != nil || !slices.ContainsFunc(cuts, like) {
		return err
	}
	return fmt.Errorf(
		"%w; if an earlier command was interrupted there, access has ended; mark the remaining grants with: mcp-authd grant finish",
		err,
	)
}

// marked is "1,234,567 grants are".
func marked(n int64) string {
	if n == 1 {
		return "1 grant is"
	}
	return thousands(n) + " grants are"
}

func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var out strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	return out.String()
}

func newGrantFinish(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "finish", Short: "Finish an interrupted revocation", Args: cobra.NoArgs,
		Long: "A command that revokes very many grants cuts access at once, and then it or a running server marks the grants as\n" +
			"revoked for the status lists. Completes this where a command was interrupted and no server runs.",
		Example: "  mcp-authd grant finish",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print the remaining work as JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			cuts, err := a.store.PendingCuts(c.Context(), time.Now())
			if err != nil {
				return err
			}
			if err := a.followCuts(c.Context()); err != nil {
				return err
			}
			if asJSON {
				views := make([]cutView, 0, len(cuts))
				for _, k := range cuts {
					views = append(views, viewCut(k))
				}
				return printJSON(s.out, views)
			}
			_, err = fmt.Fprintln(s.out, "nothing is left to be marked")
			return err
		})
}

// cutView is a cut as commands show it.
type cutView struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	User      string    `json:"user,omitempty"`
	Client    string    `json:"client,omitempty"`
	Resource  string    `json:"resource,omitempty"`
	Connector string    `json:"connector,omitempty"`
	All       bool      `json:"all,omitempty"`
	By        string    `json:"by"`
}

func viewCut(c storage.Cut) cutView {
	return cutView{
		ID: c.ID, At: c.At, User: c.UserID, Client: c.ClientID, Resource: c.Resource, Connector: c.Connector,
		All: c.All, By: string(c.By),
	}
}

// someGrants are the live grants of a selection as far as an operator is shown them.
type someGrants struct {
	list []storage.Grant
	more bool // there may be others
}

const (
	shownGrants = 1000
	readGrants  = 20 * pageSize // while it looks for those of one resource
)

// someGrants returns live grants of a selection, and no more than can be shown: with a million
// of them an operator in a hurry must not wait for a count.
func (a *app) someGrants(ctx context.Context, sel storage.Selection) (some someGrants, err error) {
	now, after := time.Now(), ""
	for read := 0; ; read += pageSize {
		page, err := a.store.ListGrants(ctx, sel.UserID, sel.ClientID, after, pageSize)
		if err != nil {
			return some, err
		}
		for _, g := range page {
			if now.Before(g.ExpiresAt) && (sel.Resource == "" || g.Resource == sel.Resource) {
				some.list = append(some.list, g)
			}
		}
		if len(page) < pageSize {
			return some, nil
		}
		if after = page[len(page)-1].ID; len(some.list) >= shownGrants || read >= readGrants {
			some.more = true
			return some, nil
		}
	}
}

// ofPeople says how many they are.
func (g someGrants) ofPeople() string { return g.atLeast(ofPeople(g.list)) }

// toApplications says how many they are.
func (g someGrants) toApplications() string { return g.atLeast(toApplications(g.list)) }

func (g someGrants) atLeast(count string) string {
	switch {
	case g.more && len(g.list) == 0:
		return "what there is"
	case g.more:
		return "at least " + count
	}
	return count
}
