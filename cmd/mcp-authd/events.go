package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newEventsCommand(s std) *cobra.Command {
	return group("events", "Look at receivers of security events", newEventsList(s), newEventsTest(s))
}

// receiverView is a receiver as it is listed.
type receiverView struct {
	ID         string    `json:"id"`
	Configured bool      `json:"configured"`
	Waiting    int       `json:"waiting"`
	Oldest     time.Time `json:"oldest,omitzero"`
	Tries      int64     `json:"tries"`
	Failed     string    `json:"failed"`
}

func newEventsList(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "list", Short: "List receivers, and what waits for each", Args: cobra.NoArgs,
		Example: "  mcp-authd events list --json",
		Long: "Lists the receivers of security events (events.receivers) with what waits for each, for how long, and\n" +
			"why the last try to send the oldest has failed. One that is no more in the configuration is listed while\n" +
			"something waits for it, or a server has named it within seven days.",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			waiting, err := a.store.Backlogs(c.Context(), a.parts().Now())
			if err != nil {
				return err
			}
			return printReceivers(s, receivers(a.config.Events.Receivers, waiting), asJSON)
		})
}

func receivers(configured []config.EventReceiver, waiting []storage.Backlog) (out []receiverView) {
	out = []receiverView{}
	for _, b := range waiting {
		out = append(out, receiverView{
			ID: b.Receiver, Waiting: b.Waiting, Oldest: b.Oldest, Tries: b.Tries, Failed: b.Failed,
		})
	}
	for _, r := range configured {
		i := slices.IndexFunc(out, func(v receiverView) bool { return v.ID == r.ID })
		if i < 0 {
			out, i = append(out, receiverView{ID: r.ID}), len(out)
		}
		out[i].Configured = true
	}
	return out
}

func printReceivers(s std, all []receiverView, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	t := newTable(s.out, "RECEIVER", "CONFIGURED", "WAITING", "OLDEST", "TRIES", "FAILED")
	for _, v := range all {
		oldest := ""
		if !v.Oldest.IsZero() {
			oldest = moment(v.Oldest)
		}
		configured := map[bool]string{true: "yes", false: "no"}[v.Configured]
		t.row(v.ID, configured, strconv.Itoa(v.Waiting), oldest, strconv.FormatInt(v.Tries, 10), v.Failed)
	}
	return t.flush()
}

func newEventsTest(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "test RECEIVER", Short: "Send a verification event to a receiver", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd events test siem",
		Long: "Has a running server send a verification event to a receiver, behind what waits for it. The log of the\n" +
			"server says securityevent.sent with the printed id once the receiver has it, and events list why not.",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print the id as JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			d := storage.Delivery{
				ID: secrets.ID("set_"), Receiver: args[0], Kind: storage.KindVerification, Detail: []byte("{}"),
				At: a.parts().Now(),
			}
			err := a.store.PutDelivery(c.Context(), d)
			if errors.Is(err, storage.ErrNotFound) {
				return fmt.Errorf("no server has named a receiver %q; is it under events.receivers, "+
					"and was serve started since?", args[0])
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, map[string]string{"id": d.ID, "receiver": d.Receiver})
			}
			_, err = fmt.Fprintf(s.out, "%s waits for %s\n", d.ID, d.Receiver)
			return err
		})
}
