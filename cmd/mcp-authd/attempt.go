package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

func newAttemptCommand(s std) *cobra.Command {
	return group("attempt", "Show how clients tried to get tokens, and why they failed", newAttemptList(s),
		newAttemptShow(s), newAttemptExplain(s), newAttemptBundle(s),
		newAttemptWatch(s))
}

// attemptSelection selects attempts.
type attemptSelection struct {
	reference, user, client, application, address string
	since, until                                  string
	failed                                        bool
	limit                                         int
}

func (f *attemptSelection) add(s std, c *cobra.Command) {
	f.addWho(s, c)
	c.Flags().StringVar(&f.reference, "reference", "", "only the attempt with this reference")
	c.Flags().StringVar(&f.since, "since", "", "only attempts that ended after this time, or within this long, such as 15m")
	c.Flags().StringVar(&f.until, "until", "", "only attempts that began before this time, or this long ago")
	c.Flags().BoolVar(&f.failed, "failed", false, "only failed attempts")
	c.Flags().IntVar(&f.limit, "limit", 50, "number of matches, the newest ones, at most 1000")
}

// addWho adds the flags that select attempts by user, client or address.
func (f *attemptSelection) addWho(s std, c *cobra.Command) {
	c.Flags().StringVar(&f.user, "user", "", "only of this user (name or id)")
	c.Flags().StringVar(&f.client, "client", "", "only by this client (name or id, even if the server does not know it)")
	c.Flags().StringVar(&f.application, "application", "",
		"only by registrations of this application (id or name, or the id of one of them)")
	c.Flags().StringVar(&f.address, "address", "", "only from this address")
	_ = c.RegisterFlagCompletionFunc("user", flagCompletion(s, (*app).userNames)) // the flag exists
	_ = c.RegisterFlagCompletionFunc("client", flagCompletion(s, (*app).clientIDs))
}

func (f *attemptSelection) check() error {
	if f.limit < 1 || f.limit > 1000 {
		return fmt.Errorf("--limit %d is not between 1 and 1000", f.limit)
	}
	if _, ok := attempt.ParseReference(f.reference); f.reference != "" && !ok {
		return fmt.Errorf("--reference %q must have eight or twelve letters and digits, such as K7PX2M4Q",
			f.reference)
	}
	if f.address != "" {
		if _, err := netip.ParseAddr(f.address); err != nil {
			return fmt.Errorf("--address %q is not an IP address", f.address)
		}
	}
	if _, err := parseMoment("--since", f.since); err != nil {
		return err
	}
	_, err := parseMoment("--until", f.until)
	return err
}

// wanted returns the selection as input of the operation.
func (f *attemptSelection) wanted() admin.AttemptsWanted {
	in := admin.AttemptsWanted{
		Reference:   f.reference,
		User:        f.user,
		Client:      f.client,
		Application: f.application,
		Address:     f.address,
		Failed:      f.failed,
		Limit:       f.limit,
	}
	in.Since, _ = parseMoment("--since", f.since) // checked before
	in.Until, _ = parseMoment("--until", f.until)
	return in
}

// query returns the selection as a query for the database.
func (f *attemptSelection) query(ctx context.Context, a *app) (attempt.Query, error) {
	service, err := a.Admin()
	if err != nil {
		return attempt.Query{}, err
	}
	return service.AttemptQuery(ctx, f.wanted())
}

func newAttemptList(s std) *cobra.Command {
	var which attemptSelection
	var asJSON bool
	c := callerCommand(s, admin.AttemptList, &cobra.Command{
		Args: cobra.NoArgs, Example: "--failed --since 1h\n--user alice\n--client Claude --json\n--application app_...",
	}, func(c *cobra.Command) {
		which.add(s, c)
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, by admin.Caller, _ []string) error {
		found, err := admin.AttemptList.Do(c.Context(), by, which.wanted())
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, found.Items)
		}
		t := newTable(s.out, "REFERENCE", "BEGAN", "CLIENT", "USER", "STEP", "VERDICT")
		for _, v := range found.Items {
			t.row(v.Reference, label.Moment(v.StartedAt), clientOf(v), v.Person, string(v.Last), v.Text)
		}
		return t.flush()
	})
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if err := which.check(); err != nil {
			return usageError{err, c.CommandPath()}
		}
		return nil
	}
	return c
}

func clientOf(v attempt.Attempt) string { return cmp.Or(v.ClientName, v.ClientID, v.Agent) }

func newAttemptShow(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.AttemptShow, &cobra.Command{
		Use: "REFERENCE", Args: cobra.ExactArgs(1), Example: "K7PX2M4Q\nK7PX2M4Q --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			v, err := admin.AttemptShow.Do(c.Context(), by, admin.AttemptReference{Reference: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			printAttempt(s.out, v.Attempt)
			for _, step := range v.Events {
				printStep(s.out, step)
			}
			if v.LeftOut > 0 {
				fmt.Fprintf(s.out, "\n%s in the middle left out\n", label.Count(v.LeftOut, "step", "steps"))
			}
			return nil
		})
}

func newAttemptExplain(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.AttemptExplain, &cobra.Command{
		Use: "REFERENCE", Args: cobra.ExactArgs(1), Example: "K7PX2M4Q\nK7PX2M4Q --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			v, err := admin.AttemptExplain.Do(c.Context(), by, admin.AttemptReference{Reference: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			printAttempt(s.out, v)
			return nil
		})
}

func printAttempt(w io.Writer, v attempt.Attempt) {
	difference := ""
	if v.Difference != nil {
		difference = v.Difference.String()
	}
	printFields(w, "reference", v.Reference, "began", label.Moment(v.StartedAt), "client", clientOf(v), "client id",
		v.ClientID, "user", v.Person, "resource", v.Resource, "verdict", v.Text, "fault", string(v.Fault), "known",
		v.Known, "difference", difference, "its turn", string(v.Whose), "the person", v.Advice.Person,
		"the operator", v.Advice.Operator, "the client", v.Advice.Client)
}

func printStep(w io.Writer, step attempt.Step) {
	fmt.Fprintf(w, "\n%s  %s  %s\n", step.At.Local().Format("15:04:05.000"), step.Kind, step.Reference)
	answer := strings.TrimSpace(strings.Join([]string{
		strconv.Itoa(step.Answer.Status), step.Answer.Error, step.Answer.Description,
	}, " "))
	printFields(w, "  asked", step.Request.Method+" "+step.Request.Path, "  agent", step.Request.Agent, "  address",
		step.Keys.Address, "  reported by", step.Keys.ReportedBy, "  with", paramsText(step.Request.Params),
		"  answered", answer, "  because", step.Answer.Reason, "  shown", step.Answer.Page,
		"  sent to", step.Answer.To, "  with", paramsText(step.Answer.Params),
		"  took", strconv.FormatFloat(step.Answer.Took, 'f', 2, 64)+" ms")
	for _, e := range step.Expected {
		printFields(w, "  expected", e.Name+" "+strings.Join(e.Values, " or "))
		if e.Difference != nil {
			printFields(w, "", e.Difference.String())
		}
	}
}

func paramsText(params []attempt.Param) string {
	var out []string
	for _, p := range params {
		out = append(out, p.Name+"="+p.Value)
	}
	return strings.Join(out, " ")
}

func newAttemptBundle(s std) *cobra.Command {
	var dir string
	var asJSON bool
	return callerCommand(s, admin.AttemptBundle, &cobra.Command{
		Use: "REFERENCE", Args: cobra.ExactArgs(1), Example: "K7PX2M4Q\nK7PX2M4Q --json",
	}, func(c *cobra.Command) {
		c.Flags().StringVar(&dir, "dir", ".", "directory for attempt-REFERENCE.json and attempt-REFERENCE.html")
		c.Flags().BoolVar(&asJSON, "json", false, "print the JSON instead")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		bundle, err := admin.AttemptBundle.Do(c.Context(), by, admin.AttemptReference{Reference: args[0]})
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, bundle)
		}
		return writeBundle(s, dir, bundle)
	})
}

// writeBundle writes the files of a bundle. It overwrites no file, because others know the
// reference and could have placed a link there.
func writeBundle(s std, dir string, b attempt.Bundle) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := b.Page(&page, pages.StyleSheet()); err != nil {
		return err
	}
	name := filepath.Join(dir, "attempt-"+b.Reference)
	files := []string{name + ".json", name + ".html"}
	for _, path := range files { // write no file if one of them exists
		if _, err := os.Lstat(path); err == nil {
			return exists(path)
		}
	}
	for i, text := range [][]byte{append(text, '\n'), page.Bytes()} {
		if err := writeNew(files[i], text); err != nil {
			return err
		}
		fmt.Fprintln(s.out, files[i])
	}
	return nil
}

// writeNew writes a new world-readable file.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // made to be published
	switch {
	case errors.Is(err, fs.ErrExist):
		return exists(path)
	case err != nil:
		return fmt.Errorf("write the bundle: %w", err)
	}
	if _, err = f.Write(text); err != nil {
		return fmt.Errorf("write the bundle: %w", errors.Join(err, f.Close(), os.Remove(path)))
	}
	return f.Close()
}

func exists(path string) error {
	return fmt.Errorf("%s exists already; remove it, or choose another directory with --dir", path)
}
