package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/web"
)

func newAttemptBundle(s std) *cobra.Command {
	var dir string
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "bundle REFERENCE", Short: "Write one attempt so that it can be published", Args: cobra.ExactArgs(1),
		Long: "Writes what is known of one attempt as attempt-REFERENCE.json and as a page, attempt-REFERENCE.html, for\n" +
			"instance for an issue of the client. Persons, addresses, ids, hosts and all texts that clients, people and\n" +
			"providers chose are placeholders in them, the same one for the same text.",
		Example: "  mcp-authd attempt bundle K7PX2M4Q\n  mcp-authd attempt bundle K7PX2M4Q --json",
	}, func(c *cobra.Command) {
		c.Flags().StringVar(&dir, "dir", ".", "where the two files are written")
		c.Flags().BoolVar(&asJSON, "json", false, "print the JSON instead")
	}, func(c *cobra.Command, a *app, args []string) error {
		found, err := a.attempt(c.Context(), args[0])
		if err != nil {
			return err
		}
		known, err := a.resources(c.Context())
		if err != nil {
			return err
		}
		operator := []string{a.config.Issuer}
		for _, r := range known {
			operator = append(append(operator, r.URI), r.Aliases...)
		}
		bundle := attempt.Publish(found, version().Version, operator)
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
