package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newExportCommand(s std) *cobra.Command {
	var where settings
	var live, asJSON bool
	c := &cobra.Command{
		Use: "export FILE", Short: "Write the whole installation to a file, to move it to another database",
		Long: "Writes the complete database, SQLite or PostgreSQL, to a new file that only you can read; - is\n" +
			"standard output. mcp-authd import reads it into a new database of either kind. Users, applications,\n" +
			"grants, sessions, keys and the audit log move, without a new sign-in of any user. The file does not\n" +
			"contain the secret key: copy the key separately.\n\n" +
			"Stop the servers first: later changes are missing from the file. --live writes it while they run, to\n" +
			"try a move.",
		Example: "  mcp-authd export authd.export\n" +
			"  mcp-authd export - | ssh new.example.com mcp-authd import -",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			a, err := where.open(ctx, s)
			if err != nil {
				return err
			}
			defer a.Close()
			done, err := a.Export(ctx, args[0], live)
			if err != nil {
				return err
			}
			switch {
			case args[0] == installation.Stream:
				return nil
			case asJSON:
				return printJSON(s.out, done)
			}
			_, err = fmt.Fprintf(s.out, "exported %s of %s to %s\n%s\n", label.Count(done.Rows, "row", "rows"),
				label.Count(done.Tables, "table", "tables"), args[0], a.WhereTheKeyIs())
			return err
		},
	}
	where.add(c)
	c.Flags().BoolVar(&live, "live", false, "export even while servers run; later changes are missing from the file")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newImportCommand(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use: "import FILE", Short: "Read an export into a new database",
		Long: "Reads an export of mcp-authd into the database of the configuration, SQLite or PostgreSQL; - is\n" +
			"standard input. The database must not hold an installation yet. The command imports everything or\n" +
			"nothing. The secret key and the issuer must be the same as in the exported installation:\n" +
			"applications identify the server by its issuer.",
		Example: "  mcp-authd import authd.export --config postgres.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := where.load(s)
			if err != nil {
				return err
			}
			done, err := a.Import(c.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, done)
			}
			_, err = fmt.Fprintf(s.out, "imported %s of %s, exported %s by version %s\n",
				label.Count(done.Rows, "row", "rows"), label.Count(done.Tables, "table", "tables"),
				label.Moment(done.At), label.Printable(done.Version))
			return err
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
