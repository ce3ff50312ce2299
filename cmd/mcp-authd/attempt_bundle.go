package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/web"
)

func newAttemptBundle(s std) *cobra.Command {
	var dir string
	var asJSON bool
	return callerCommand(s, admin.AttemptBundle, &cobra.Command{
		Use: "REFERENCE", Args: cobra.ExactArgs(1), Example: "K7PX2M4Q\nK7PX2M4Q --json",
	}, func(c *cobra.Command) {
		c.Flags().StringVar(&dir, "dir", ".", "where attempt-REFERENCE.json and attempt-REFERENCE.html are written")
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

// writeBundle writes the files of a bundle, over those of an earlier one of the same attempt.
func writeBundle(s std, dir string, b attempt.Bundle) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := b.Page(&page, web.StyleSheet()); err != nil {
		return err
	}
	name := filepath.Join(dir, "attempt-"+b.Reference)
	for _, file := range []struct {
		path string
		text []byte
	}{{name + ".json", append(text, '\n')}, {name + ".html", page.Bytes()}} {
		if err := os.WriteFile(file.path, file.text, 0o644); err != nil { //nolint:gosec // made to be published
			return fmt.Errorf("write the bundle: %w", err)
		}
		fmt.Fprintln(s.out, file.path)
	}
	return nil
}
