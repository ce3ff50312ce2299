package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/pages"
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
