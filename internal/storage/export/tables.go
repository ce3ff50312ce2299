package export

import (
	"fmt"
	"slices"
	"strings"
)

// Tables returns the exported tables, in an order for writing: a table comes after the tables that
// its rows refer to. event_receivers comes after all tables whose rows would create deliveries.
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

// Staying returns the tables that are not exported: data about the database itself, and about its
// servers.
func Staying() []string { return []string{"schema_version", "replicas", "sqlite_sequence"} }

// Seeded returns the tables that have rows in a new database.
func Seeded() []string { return []string{"settings", "grant_walks"} }

// Used returns the condition for rows that a new database does not have.
func Used(table string) string {
	if slices.Contains(Seeded(), table) {
		return "1 = 0"
	}
	return "1 = 1"
}

// Numbered returns the column of a table that the database numbers, "" if there is no such column.
func Numbered(table string) string {
	switch table {
	case "grants":
		return "status_index"
	case "nodes", "outbox", "attempt_steps":
		return "seq"
	}
	return ""
}

// Moves returns the condition for exported rows of a table. It excludes the database's own
// settings: the needs of the schema, and the rows that spread PostgreSQL's writes. It also excludes
// rows of pauses that only serve as locks of approvals.
func Moves(table string) string {
	switch table {
	case "settings":
		return "name <> 'schema_needs' AND name NOT LIKE 'settled:%'"
	case "pauses":
		return "paused_at IS NOT NULL"
	}
	return "1 = 1"
}

// Check returns a wrapped ErrForm for a table that is not in Tables, or with invalid columns. Names
// must be unique and must only have characters of column names, because they become part of a
// statement.
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

// Names returns the columns for use in a statement.
func (t Table) Names() string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
