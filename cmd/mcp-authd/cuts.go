package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/admin"
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
	return callerCommand(s, admin.GrantFinish, &cobra.Command{Args: cobra.NoArgs},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print the remaining work as JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			cuts, err := admin.GrantFinish.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			local, ok := by.(*here)
			if ok {
				err = local.app.followCuts(c.Context())
			}
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(s.out, cuts.Items)
			case !ok && len(cuts.Items) > 0:
				_, err = fmt.Fprintln(s.out, "the server goes on with:", count(len(cuts.Items), "cut", "cuts"))
				return err
			}
			_, err = fmt.Fprintln(s.out, "nothing is left to be marked")
			return err
		})
}

// someGrants are live grants of a selection, as far as an operator is shown them.
func (a *app) someGrants(ctx context.Context, sel storage.Selection) (admin.SomeGrants, error) {
	service, err := a.admin()
	if err != nil {
		return admin.SomeGrants{}, err
	}
	return service.SomeGrants(ctx, sel)
}
