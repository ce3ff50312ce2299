package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/migrations"
)

// build is what this binary was made of.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // by what was not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the database
}

// version reads what the compiler has left in the binary. Each start asks for it, so the schema, for
// which all migrations are read, is left out.
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
			steps, err := migrations.Steps(migrations.SQLite) // PostgreSQL has the same
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
