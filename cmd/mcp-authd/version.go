package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// build describes this binary.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the database
}

// version returns the build information of the binary. It omits the schema, because every start
// calls version, and the schema requires reading all migrations.
func version() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersionCommand(s std) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  mcp-authd version --json",
		RunE: func(*cobra.Command, []string) error {
			b := version()
			steps, err := migration.Steps(migration.SQLite) // the same number for PostgreSQL
			if err != nil {
				return err
			}
			b.Schema = len(steps)
			if asJSON {
				return printJSON(s.out, b)
			}
			commit := b.Commit
			if b.Modified {
				commit += " (modified)"
			}
			fmt.Fprintf(s.out, "mcp-authd %s\n", b.Version)
			printFields(s.out, "commit", commit, "go", b.Go, "platform", b.Platform, "schema", fmt.Sprint(b.Schema))
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
