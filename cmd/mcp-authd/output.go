package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
)

// storeCommand completes a command that works on an installation: it adds the flags that
// find it, opens it, and closes it afterwards. It makes none.
func storeCommand(s std, c *cobra.Command, flags func(*cobra.Command), run func(*cobra.Command, *app, []string) error) *cobra.Command {
	return commandOn(settings.open, s, c, flags, run)
}

// opener finds an installation and opens it.
type opener func(settings, context.Context, std) (*app, error)

func commandOn(open opener, s std, c *cobra.Command, flags func(*cobra.Command), run func(*cobra.Command, *app, []string) error) *cobra.Command {
	var where settings
	where.add(c)
	if flags != nil {
		flags(c)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		a, err := open(where, c.Context(), s)
		if err != nil {
			return err
		}
		defer a.Close()
		return run(c, a, args)
	}
	return c
}

const pageSize = 500

// pages reads a list to its end, a page at a time.
func pages[T any](next func(after string) (page []T, last string, err error)) ([]T, error) {
	var all []T
	for after := ""; ; {
		page, last, err := next(after)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < pageSize {
			return all, nil
		}
		after = last
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints aligned columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, columns ...string) *table {
	t := &table{tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row prints one line. Control characters, which a client may have put into its name,
// do not reach the terminal.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// printable leaves out what a terminal might take for commands.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

func (t *table) flush() error { return t.w.Flush() }
