package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// pastLog is a log whose revocations are repeated.
type pastLog struct{ file, since string }

func (p *pastLog) add(c *cobra.Command) {
	c.Flags().StringVar(&p.file, "from-log", "", "repeat the revocations in this server log (JSON; - for standard input)")
	c.Flags().StringVar(&p.since, "since", "", "only revocations since this time, or this long ago (15m)")
}

// check returns an error for invalid flags: a log excludes other flags. Without a log, it returns
// others.
func (p *pastLog) check(others error, alone bool) error {
	switch {
	case p.file == "" && p.since != "", p.file != "" && !alone:
		return errors.New("--from-log goes with --since alone")
	case p.file != "":
		return nil
	}
	return others
}

// repeat shows which revocations of a log it would repeat, asks, and repeats them.
func (p *pastLog) repeat(ctx context.Context, s std, a *app, sure *confirmation, asJSON bool) error {
	start, err := parseMoment("--since", p.since)
	if err != nil {
		return err
	}
	in, err := openLog(s, p.file)
	if err != nil {
		return err
	}
	defer in.Close()
	events, err := readLog(in, start)
	if err != nil {
		return err
	}
	found, err := a.repetitions(ctx, events)
	if err != nil {
		return err
	}
	if !asJSON {
		found.print(s)
	}
	if len(found.Repeated) > 0 {
		if err := sure.ask(s, "This repeats "+label.Count(len(found.Repeated), "cut", "cuts")+"."); err != nil {
			return err
		}
	}
	for i, r := range found.Repeated {
		if err := r.done(ctx); err != nil {
			return fmt.Errorf("%s: %w; %d of %s repeated, and the command may be run again", r.Cut, err, i,
				label.Count(len(found.Repeated), "cut was", "cuts were"))
		}
	}
	if asJSON {
		return printJSON(s.out, found)
	}
	_, err = fmt.Fprintf(s.out, "repeated: %s\n", label.Count(len(found.Repeated), "cut", "cuts"))
	return err
}

func (r *repetitions) print(s std) {
	for _, c := range r.Repeated {
		fmt.Fprintf(s.out, "%s  %s\n", label.Moment(c.At), label.Printable(c.Cut))
	}
	for _, text := range r.ByHand {
		fmt.Fprintf(s.out, "to do by hand: %s\n", label.Printable(text))
	}
}
