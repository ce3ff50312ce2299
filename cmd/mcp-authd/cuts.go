package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/cutting"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// tellEvery is the interval of progress messages.
	tellEvery = time.Second
	// lookEvery is the polling interval for a cut that another process marks.
	lookEvery = 250 * time.Millisecond
	// worthTelling is the smallest cut whose completion is printed.
	worthTelling = 5000
)

// followCuts marks the grants of pending cuts as revoked, including cuts that an earlier command
// left, and prints its progress. The cuts are already in effect. While another process holds the
// lease, followCuts waits for it. After an interruption, a server or the next command continues.
func (a *app) followCuts(ctx context.Context) (err error) {
	// an interrupted command still reports the rest
	cuts, err := a.Store.PendingCuts(context.WithoutCancel(ctx), time.Now())
	if err != nil || len(cuts) == 0 {
		return err
	}
	f := cutting.Follower{Store: a.Store, Holder: secrets.Token("rep_"), Now: time.Now, Audit: a.Audit}
	defer func() { err = errors.Join(err, f.Release(ctx)) }()
	for _, c := range cuts {
		p := progress{out: a.std.err, told: time.Now(), cut: c}
		if err := a.followCut(ctx, f, &p); err != nil {
			return fmt.Errorf(
				"%w; access has ended, and %s marked as revoked: a running server continues, or: mcp-authd grant finish",
				err, marked(p.cut.Grants))
		}
	}
	return nil
}

func (a *app) followCut(ctx context.Context, f cutting.Follower, p *progress) error {
	for {
		held, err := f.Follow(ctx, p.cut.ID, p.tell)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return nil
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil || held:
			return err
		}
		cuts, err := a.Store.PendingCuts(ctx, time.Now())
		i := slices.IndexFunc(cuts, func(c storage.Cut) bool { return c.ID == p.cut.ID })
		switch {
		case err != nil:
			return err
		case i < 0:
			fmt.Fprintln(p.out, "mcp-authd: a server or another command has marked the grants as revoked")
			return nil
		}
		p.tell(cuts[i])
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// progress prints the progress of a cut.
type progress struct {
	out  io.Writer
	told time.Time
	cut  storage.Cut // last seen state
}

func (p *progress) tell(c storage.Cut) {
	p.cut = c
	switch {
	case c.Done && c.Grants >= worthTelling:
		fmt.Fprintf(p.out, "mcp-authd: %s marked as revoked\n", marked(c.Grants))
	case !c.Done && time.Since(p.told) >= tellEvery:
		p.told = time.Now()
		fmt.Fprintf(p.out, "mcp-authd: access has ended; %s marked as revoked so far\n", marked(c.Grants))
	}
}

// marked returns text such as "1,234,567 grants are".
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
				_, err = fmt.Fprintln(s.out, "the server goes on with:", label.Count(len(cuts.Items), "cut", "cuts"))
				return err
			}
			_, err = fmt.Fprintln(s.out, "nothing is left to be marked")
			return err
		})
}

// someGrants returns the live grants of a selection, up to the number that is shown.
func (a *app) someGrants(ctx context.Context, sel storage.Selection) (admin.SomeGrants, error) {
	service, err := a.Admin()
	if err != nil {
		return admin.SomeGrants{}, err
	}
	return service.SomeGrants(ctx, sel)
}
