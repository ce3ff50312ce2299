package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newMigrateCommand(s std) *cobra.Command {
	return group("migrate", "Manage the database schema", newMigrateUp(s), newMigrateStatus(s))
}

// openUnmigrated opens the database without migrating it: that is what the commands here
// are about.
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
	c := &cobra.Command{
		Use: "up", Short: "Bring the database to this version, or make it", Args: cobra.NoArgs, Example: "  mcp-authd migrate up",
		RunE: func(c *cobra.Command, _ []string) error {
			a, m, err := where.openUnmigrated(c.Context(), s, (*app).makeKeyFile)
			if err != nil {
				return err
			}
			defer a.Close()
			if err := m.Migrate(c.Context()); err != nil {
				return a.explainStore(err)
			}
			_, err = fmt.Fprintln(s.out, "the database is up to date")
			return err
		},
	}
	where.add(c)
	return c
}

// makeKeyFile sees to the secret key that a SQLite database is kept with: without it the
// database that is about to be made would be one that has lost its key.
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
		Use: "status", Short: "List migrations and when they were applied", Args: cobra.NoArgs, Example: "  mcp-authd migrate status --json",
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
				if st.AppliedAt.IsZero() {
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
