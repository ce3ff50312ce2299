package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/request"
)

// storeCommand completes a command on an installation. It adds the flags that select the
// installation, opens it, and closes it afterwards. It never creates one.
func storeCommand(
	s std, c *cobra.Command, flags func(*cobra.Command), run func(*cobra.Command, *app, []string) error,
) *cobra.Command {
	return commandOn((*installation.Installation).Open, s, c, flags, run)
}

// opener opens an installation, or creates it.
type opener func(*installation.Installation, context.Context) error

// open loads the configuration and opens the existing installation.
func (w settings) open(ctx context.Context, std std) (*app, error) {
	return w.openBy((*installation.Installation).Open, ctx, std)
}

func (w settings) openBy(open opener, ctx context.Context, std std) (*app, error) {
	a, err := w.load(std)
	if err != nil {
		return nil, err
	}
	return a, open(a.Installation, ctx)
}

func commandOn(
	open opener, s std, c *cobra.Command, flags func(*cobra.Command), run func(*cobra.Command, *app, []string) error,
) *cobra.Command {
	var where settings
	where.add(c)
	if flags != nil {
		flags(c)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		a, err := where.openBy(open, c.Context(), s)
		if err != nil {
			return err
		}
		defer a.Close()
		a.byOperator(c)
		err = run(c, a, args)
		if a.Config.Audit.Required && a.Audit.Unkept() {
			err = errors.Join(err, errors.New("the change was made, but is not in the audit log (audit.required): see the log above"))
		}
		return err
	}
	return c
}

// byOperator records a command's actions as the operator's, in the log of the server.
func (a *app) byOperator(c *cobra.Command) {
	c.SetContext(request.Without(slog.String("by", "operator")).Within(c.Context()))
	if a.Store != nil {
		a.Audit = audit.Deferred(a.Store, a.Log)
	}
}

func printJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, escaped(b.String()))
	return err
}

// flags combines several functions that add flags.
func flags(add ...func(*cobra.Command)) func(*cobra.Command) {
	return func(c *cobra.Command) {
		for _, each := range add {
			each(c)
		}
	}
}

// answering selects the output of a changing command: the operation's output as JSON, or a line.
type answering struct{ json bool }

func (a *answering) add(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print the response as JSON")
}

// print prints the output as JSON if requested, or else a line about the change.
func (a answering) print(s std, answer any, line string, args ...any) error {
	if a.json {
		return printJSON(s.out, answer)
	}
	_, err := fmt.Fprintf(s.out, line+"\n", args...)
	return err
}

// printJSONLine prints a value on one line.
func printJSONLine(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, escaped(string(text))+"\n")
	return err
}

// escapingWriter writes JSON through escaped.
type escapingWriter struct{ io.Writer }

// Write implements io.Writer.
func (w escapingWriter) Write(b []byte) (int, error) {
	if !bytes.ContainsFunc(b, func(r rune) bool { return r > '~' }) {
		return w.Writer.Write(b) // the usual case
	}
	if _, err := io.WriteString(w.Writer, escaped(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// escaped returns JSON without characters that a terminal might interpret. Unprintable characters
// occur only in strings, where the encoder leaves those beyond ASCII.
func escaped(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// printFields prints names and values, one per line. It omits empty values.
func printFields(w io.Writer, namesAndValues ...string) {
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if v := label.Printable(namesAndValues[i+1]); v != "" {
			fmt.Fprintf(w, "%-13s %s\n", namesAndValues[i], v)
		}
	}
}

const pageSize = 500

// whole reads a whole list, page by page.
func whole[T any](next func(after string) (page []T, last string, err error)) ([]T, error) {
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
