package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// formatVerify is the format that package audit/verify checks.
const formatVerify = "verify"

func newAuditExport(s std) *cobra.Command {
	var format string
	return storeCommand(s, &cobra.Command{
		Use: "export", Short: "Write the whole audit log for other programs", Args: cobra.NoArgs,
		Long: "Writes the audit log as JSON lines: first the checkpoints, then each entry with its index, its leaf,\n" +
			"and the canonical JSON that is hashed. For an entry that was removed by its age, only the hash is\n" +
			"written. The Go package audit/verify checks such a file without the server (examples/auditverify).\n\n" +
			"With --format json, ocsf or cef it writes only the entries, each on one line: like audit list\n" +
			"--json, as events of the Open Cybersecurity Schema Framework, or in the Common Event Format.\n\n" +
			"An entry that is not proven gives the reason (unproven). Exits with 1 if entries differ from what\n" +
			"servers wrote.",
		Example: "  mcp-authd audit export >audit.jsonl\n  mcp-authd audit export --format ocsf >events.jsonl",
	}, func(c *cobra.Command) {
		c.Flags().StringVar(&format, "format", formatVerify, "format: verify, json, ocsf or cef")
	}, func(c *cobra.Command, a *app, _ []string) error {
		write, err := a.exported(format)
		if err != nil {
			return err
		}
		standing, err := a.auditStanding(c.Context())
		if err != nil {
			return err
		}
		var marks unproven
		err = auditlog.Export(c.Context(), a.Store, standing, func(l verify.Line) error {
			marks.count(l.Unproven)
			return write(l)
		})
		return errors.Join(err, marks.tell(s))
	})
}

// auditStanding returns which part of the log is proven. It is empty if no server has started the
// log.
func (a *app) auditStanding(ctx context.Context) (auditlog.Standing, error) {
	signer, err := a.Parts().AuditChecker(ctx)
	if err == nil {
		var standing auditlog.Standing
		if standing, err = signer.Standing(ctx); err == nil {
			return standing, nil
		}
	}
	if errors.Is(err, storage.ErrNotFound) {
		return auditlog.Standing{}, nil
	}
	return auditlog.Standing{}, err
}

// unproven counts entries that are not proven, by reason.
type unproven map[string]int

func (u *unproven) count(why string) {
	if why == "" {
		return
	}
	if *u == nil {
		*u = unproven{}
	}
	(*u)[why]++
}

// tell reports exported entries that are not proven. It returns an error if the log differs from
// the log that servers have written and signed.
func (u unproven) tell(s std) error {
	wrong := 0
	for _, why := range slices.Sorted(maps.Keys(u)) {
		fmt.Fprintf(s.err, "not proven: %s: %s\n", label.Count(u[why], "entry", "entries"), why)
		if auditlog.Wrong(why) {
			wrong += u[why]
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%s exported that this installation did not write so: run: mcp-authd audit verify",
			label.Count(wrong, "entry was", "entries were"))
	}
	return nil
}

// exported returns a function that writes a line of the log in a format.
func (a *app) exported(format string) (func(verify.Line) error, error) {
	if format == formatVerify {
		out := json.NewEncoder(a.std.out)
		out.SetEscapeHTML(false)
		return func(l verify.Line) error { return out.Encode(l) }, nil
	}
	f, err := auditformat.Parse(format)
	if err != nil {
		return nil, usageError{fmt.Errorf("--format: %w or verify", err), "mcp-authd audit export"}
	}
	source := auditformat.Source{Issuer: a.Config.Issuer, Version: version().Version}
	return func(l verify.Line) error {
		if l.Leaf == "" {
			return nil // a checkpoint, or the hash of a removed entry
		}
		e, err := auditformat.Read(l.Index, []byte(l.Leaf))
		if err != nil {
			return err
		}
		e.Unproven = l.Unproven
		_, err = a.std.out.Write(append(f.Line(source, e), '\n'))
		return err
	}, nil
}
