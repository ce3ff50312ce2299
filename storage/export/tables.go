package export

import (
	"fmt"
	"slices"
	"strings"
)

// Tables are those that move, in an order in which they can be written: a table comes after those that
// its rows name, and event_receivers after all that receivers would be told of when it is written.
func Tables() []string {
	return []string{
		"settings", "signing_keys", "resources", "clients", "application_aliases", "application_holds", "users",
		"account_groups", "group_members", "provider_groups", "access_rules", "ways", "recovery_codes", "identities",
		"upstreams", "handbacks", "departures", "farewells", "sessions",
		"one_time_links", "remote_sign_ins", "consents", "pauses", "grants", "grant_walks", "refresh_tokens",
		"nodes", "last_calls", "devices", "pushed_requests", "denied_tokens", "spent", "failures", "allowances",
		"cuts", "trust_entries", "trust_links", "trust_cuts", "application_cuts", "audiences", "asserted_ends",
		"notices", "events", "outbox", "keyed_requests", "proposals", "tools", "clearances", "tasks",
		"certificate_files", "attempt_steps", "attempt_keys", "audit_entries", "audit_head", "audit_tiles",
		"audit_writers", "audit_checkpoints", "audit_sinks", "event_receivers",
	}
}

// Staying are the tables that do not move: what a database says of itself, and of the servers that have it.
func Staying() []string { return []string{"schema_version", "replicas", "sqlite_sequence"} }

// Seeded are the tables of which a new database has rows.
func Seeded() []string { return []string{"settings", "grant_walks"} }

// Used is the condition on the rows of a table that a new database does not have.
func Used(table string) string {
	if slices.Contains(Seeded(), table) {
		return "1 = 0"
	}
	return "1 = 1"
}

// Numbered is the column of a table whose numbers are given out by the database, "" where there is none.
func Numbered(table string) string {
	switch table {
	case "grants":
		return "status_index"
	case "nodes", "outbox", "attempt_steps":
		return "seq"
	}
	return ""
}

// Moves is the condition on the rows of a table that move: of the settings, what the schema needs and where
// PostgreSQL spreads its writes over are the database's own. So are the rows of pauses for which approvals wait.
func Moves(table string) string {
	switch table {
	case "settings":
		return "name <> 'schema_needs' AND name NOT LIKE 'settled:%'"
	case "pauses":
		return "paused_at IS NOT NULL"
	}
	return "1 = 1"
}

// Check returns ErrForm, wrapped, for a table that is not among Tables, or that names a column twice or in letters that
// no column has: it becomes part of a statement.
func (t Table) Check() error {
	if !slices.Contains(Tables(), t.Name) {
		return fmt.Errorf("%w: table %q", ErrForm, t.Name)
	}
	seen := map[string]bool{}
	for _, c := range t.Columns {
		if c.Name == "" || seen[c.Name] || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
			return fmt.Errorf("%w: column %q of %s", ErrForm, c.Name, t.Name)
		}
		if c.Kind != Text && c.Kind != Integer && c.Kind != Bytes {
			return fmt.Errorf("%w: column %s.%s is %q", ErrForm, t.Name, c.Name, c.Kind)
		}
		seen[c.Name] = true
	}
	if len(t.Columns) == 0 {
		return fmt.Errorf("%w: table %s has no columns", ErrForm, t.Name)
	}
	return nil
}

// Names are the columns, as they stand in a statement.
func (t Table) Names() string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
