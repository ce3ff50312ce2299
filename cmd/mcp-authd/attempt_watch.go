package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newAttemptWatch(s std) *cobra.Command {
	which := attemptSelection{limit: 1}
	var asJSON bool
	c := storeCommand(s, &cobra.Command{
		Use: "watch", Short: "Show attempts as they happen, until ^C", Args: cobra.NoArgs,
		Long: "Prints each step of an attempt as a line, about a second after it happened, on any server of the\n" +
			"installation. It also prints each result when it is known, including that a client did not continue.",
		Example: "  mcp-authd attempt watch --client Claude\n  mcp-authd attempt watch --failed --since 15m\n" +
			"  mcp-authd attempt watch --json",
	}, func(c *cobra.Command) {
		which.addWho(s, c)
		c.Flags().BoolVar(&which.failed, "failed", false, "only the results of failed attempts, and no steps")
		c.Flags().StringVar(&which.since, "since", "",
			"begin with the events since this time, or this long ago, such as 15m; at most an hour")
		c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	}, func(c *cobra.Command, a *app, _ []string) error {
		q, err := which.query(c.Context(), a)
		if err != nil {
			return err
		}
		service, err := a.Admin()
		if err != nil {
			return err
		}
		names := service.Names()
		fmt.Fprintln(s.err, "watching attempts, ^C ends it")
		return a.Parts().Attempts().Watch(c.Context(), q, nil, func(n attempt.News) error {
			if which.failed && (n.Step != nil || n.Attempt.Fault == "") {
				return nil
			}
			if asJSON {
				line, err := newsJSON(n)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(s.out, line)
				return err
			}
			_, err := fmt.Fprintln(s.out, newsLine(withName(c.Context(), names, n)))
			return err
		})
	})
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if err := which.check(); err != nil {
			return usageError{err, c.CommandPath()}
		}
		return nil
	}
	return c
}

// withName returns news with the user's name if a step, such as a refresh, has only the ID.
func withName(ctx context.Context, names *admin.Names, n attempt.News) attempt.News {
	if strings.HasPrefix(n.Attempt.Person, identifier.User) {
		n.Attempt.Person = names.User(ctx, n.Attempt.Person)
	}
	return n
}

// newsView is a line of attempt watch --json.
type newsView struct {
	Event   string           `json:"event"` // "step" or "verdict"
	ID      string           `json:"id"`    // of the attempt
	Attempt *attempt.Attempt `json:"attempt,omitempty"`
	Step    *attempt.Step    `json:"step,omitempty"`
}

func newsJSON(n attempt.News) (string, error) {
	v := newsView{Event: "step", ID: n.Attempt.ID, Step: n.Step}
	if n.Step == nil {
		v.Event, v.Attempt = "verdict", &n.Attempt
	}
	text, err := json.Marshal(v)
	return escaped(string(bytes.TrimSpace(text))), err
}

func newsLine(n attempt.News) string {
	if n.Step == nil {
		verdict := cmp.Or(string(n.Attempt.Fault), "ok") + ": " + n.Attempt.Text
		return newsOf(n, n.Attempt.EndedAt, n.Attempt.Reference, "verdict", verdict)
	}
	a := n.Step.Answer
	said := strings.TrimSpace(strings.Join([]string{strconv.Itoa(a.Status), cmp.Or(a.Error, a.Page, a.To)}, " "))
	return newsOf(n, n.Step.At, n.Step.Reference, string(n.Step.Kind), said)
}

func newsOf(n attempt.News, at time.Time, reference, what, said string) string {
	who := clientOf(n.Attempt)
	if n.Attempt.Person != "" {
		who += ", " + n.Attempt.Person
	}
	return label.Printable(fmt.Sprintf("%s  %s  %-12s  %s  (%s)", at.Local().Format(time.TimeOnly), reference, what,
		said, cmp.Or(who, "unknown")))
}
