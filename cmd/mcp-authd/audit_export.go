package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
)

// formatVerify is what package audit/verify checks.
const formatVerify = "verify"

func newAuditExport(s std) *cobra.Command {
	var format string
	return storeCommand(s, &cobra.Command{
		Use: "export", Short: "Write the whole audit log for other programs", Args: cobra.NoArgs,
		Long: "Writes the audit log as JSON lines: the checkpoints first, then each entry with its index and leaf, the\n" +
			"canonical JSON that is hashed, or its hash alone where the entry was removed by its age. The Go package\n" +
			"audit/verify checks such a file, without anything of the server (examples/auditverify).\n\n" +
			"With --format json, ocsf or cef it writes the entries alone, each on one line: as audit list --json does,\n" +
			"as events of the Open Cybersecurity Schema Framework, or in the Common Event Format.",
		Example: "  mcp-authd audit export >audit.jsonl\n  mcp-authd audit export --format ocsf >events.jsonl",
	}, func(c *cobra.Command) {
		c.Flags().StringVar(&format, "format", formatVerify, "verify, json, ocsf or cef")
	}, func(c *cobra.Command, a *app, _ []string) error {
		write, err := a.exported(format)
		if err != nil {
			return err
		}
		return auditlog.Export(c.Context(), a.store, write)
	})
}

// exported writes a line of the log in a format.
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
	source := auditformat.Source{Issuer: a.config.Issuer, Version: version().Version}
	return func(l verify.Line) error {
		if l.Leaf == "" {
			return nil // a checkpoint, or the hash of what was removed
		}
		e, err := auditformat.Read(l.Index, []byte(l.Leaf))
		if err != nil {
			return err
		}
		_, err = a.std.out.Write(append(f.Line(source, e), '\n'))
		return err
	}, nil
}
