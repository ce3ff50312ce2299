package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newMigrateCommand(s std) *cobra.Command {
	return group("migrate", "Manage the database schema", newMigrateUp(s), newMigrateStatus(s))
}

// openUnmigrated opens the database without migrating it, for the commands about migrations.
func (s settings) openUnmigrated(ctx context.Context, std std, ready func(*app) error) (*app, migrating, error) {
	a, err := s.load(std)
	if err == nil {
		err = ready(a)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := a.openDatabase(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	a.store = m
	return a, m, nil
}

func newMigrateUp(s std) *cobra.Command {
	var where settings
	var now, asJSON bool
	c := &cobra.Command{
		Use: "up", Short: "Migrate the database to this version, or create it", Args: cobra.NoArgs,
		Example: "  mcp-authd migrate up\n  mcp-authd migrate up --now",
		Long: "Applies the missing migrations. A migration that breaks servers of an earlier version may be\n" +
			"postponed, so that you have time to replace them. A server applies it when the time has come; with\n" +
			"database.migrate: off, run this command again. With --now, it is applied now.",
		RunE: func(c *cobra.Command, _ []string) error {
			a, m, err := where.openUnmigrated(c.Context(), s, (*app).makeKeyFile)
			if err != nil {
				return err
			}
			defer a.Close()
			migrate := m.Migrate
			if now {
				migrate = m.MigrateNow
			}
			if err := migrate(c.Context()); err != nil {
				return a.explainStore(err)
			}
			return s.tellMigrated(c.Context(), m, asJSON)
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the migrations as JSON, as migrate status does")
	c.Flags().BoolVar(&now, "now", false,
		"also apply the steps that are put off; only when every server of an earlier version is stopped")
	return c
}

// tellMigrated says that the database is up to date, except for migrations that wait, and how long
// they wait.
func (s std) tellMigrated(ctx context.Context, m migrating, asJSON bool) error {
	all, err := m.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(s.out, all)
	}
	if _, err := fmt.Fprintln(s.out, "the database is up to date"); err != nil {
		return err
	}
	for _, st := range all {
		if !st.DueAt.IsZero() {
			fmt.Fprintf(s.out, "%d (%s) is put off until %s, for servers of an earlier version to be replaced\n",
				st.Version, st.Name, moment(st.DueAt))
		}
	}
	return nil
}

// makeKeyFile ensures that the secret key of a SQLite database exists. Otherwise the new database
// would look like one that has lost its key.
func (a *app) makeKeyFile() error {
	if a.config.Postgres() {
		return nil
	}
	return a.loadKeys(a.makeKey)
}

func newMigrateStatus(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "List migrations and when they were applied", Args: cobra.NoArgs,
		Example: "  mcp-authd migrate status --json",
		RunE: func(c *cobra.Command, _ []string) error {
			a, m, err := where.openUnmigrated(c.Context(), s, (*app).databaseIsThere)
			if err != nil {
				return err
			}
			defer a.Close()
			all, err := m.MigrationStatus(c.Context())
			if err != nil {
				return a.explainStore(err)
			}
			if asJSON {
				return printJSON(s.out, all)
			}
			t := newTable(s.out, "VERSION", "NAME", "APPLIED")
			for _, st := range all {
				applied := moment(st.AppliedAt)
				switch {
				case !st.DueAt.IsZero():
					applied = "put off until " + moment(st.DueAt)
				case st.AppliedAt.IsZero():
					applied = "pending"
				}
				t.row(fmt.Sprint(st.Version), st.Name, applied)
			}
			return t.flush()
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
