package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/auditsink"
)

// sinkView is a sink as it is listed.
type sinkView struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Format  string    `json:"format"`
	Opened  bool      `json:"opened"` // a server has delivered to it, or tried to
	Waiting int64     `json:"waiting"`
	Oldest  time.Time `json:"oldest,omitzero"`
	Lost    int64     `json:"lost"`
	Failed  string    `json:"failed"`
}

func newAuditSinks(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "sinks", Short: "List the sinks of the audit log, and what waits for each", Args: cobra.NoArgs,
		Long: "Lists the sinks of the configuration (audit.sinks) with the entries that each does not have yet, since\n" +
			"when the oldest waits and why it was not taken, and how many entries a sink will never have.",
		Example: "  mcp-authd audit sinks --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			configured := a.config.AuditSinks()
			states, err := auditsink.States(c.Context(), a.store, configured)
			if err != nil {
				return err
			}
			return printSinks(s, sinkViews(configured, states), asJSON)
		})
}

func sinkViews(configured []auditsink.Config, states []auditsink.State) []sinkView {
	out := []sinkView{}
	for _, c := range configured {
		v := sinkView{ID: c.ID, Kind: string(c.Kind), Format: string(c.Format)}
		if i := slices.IndexFunc(states, func(k auditsink.State) bool { return k.ID == c.ID }); i >= 0 {
			k := states[i]
			v.Opened, v.Waiting, v.Oldest, v.Lost, v.Failed = true, k.Waiting, k.Oldest, k.Lost, k.Failed
		}
		out = append(out, v)
	}
	return out
}

func printSinks(s std, all []sinkView, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	t := newTable(s.out, "SINK", "KIND", "FORMAT", "WAITING", "OLDEST", "LOST", "FAILED")
	for _, v := range all {
		oldest := ""
		if !v.Oldest.IsZero() {
			oldest = moment(v.Oldest)
		}
		waiting := strconv.FormatInt(v.Waiting, 10)
		if !v.Opened {
			waiting = "never opened"
		}
		t.row(v.ID, v.Kind, v.Format, waiting, oldest, strconv.FormatInt(v.Lost, 10), v.Failed)
	}
	return t.flush()
}
