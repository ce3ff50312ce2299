package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// ReplaceResource implements storage.Resources. It updates the row of the resource first, so that
// one caller at a time changes the aliases.
func (s *Store) ReplaceResource(ctx context.Context, r storage.Resource, now time.Time) error {
	return s.txCommitted(ctx, "ReplaceResource", func(ctx context.Context, q querier) error {
		name, scopes := r.Name, column.List(r.Scopes)
		err := changed(storage.ErrNotFound)(exec(ctx, q,
			`UPDATE resources SET name = $1, scopes = $2, dpop = $4, upstream = $5, tool_rules = $6
			WHERE uri = $3 AND alias_of IS NULL`, name, scopes, r.URI, r.DPoP, r.Upstream, column.ToolRules(r)))
		if err != nil {
			return err
		}
		// read by versions that know no aliases
		_, err = exec(ctx, q, "UPDATE resources SET name = $1, scopes = $2, dpop = $4 WHERE alias_of = $3",
			name, scopes, r.URI, r.DPoP)
		if err != nil {
			return err
		}
		had, err := aliases(ctx, q, r.URI)
		if err != nil {
			return err
		}
		gone := slices.DeleteFunc(slices.Clone(had), func(a string) bool { return slices.Contains(r.Aliases, a) })
		if err := removeAliases(ctx, q, gone, now); err != nil {
			return err
		}
		r.CreatedAt = now
		return portable.AddAddresses(portableConn{ctx, q}, slices.DeleteFunc(column.Addresses(r)[1:],
			func(row column.Address) bool { return slices.Contains(had, row.URI) }))
	})
}

// RemoveResource implements storage.Resources. The row of the resource goes last: until then no
// alias can be added that would remain.
func (s *Store) RemoveResource(ctx context.Context, uri string, now time.Time) error {
	return s.txCommitted(ctx, "RemoveResource", func(ctx context.Context, q querier) error {
		err := one(ctx, q, []any{&uri}, // one caller at a time
			"SELECT uri FROM resources WHERE uri = $1 AND alias_of IS NULL FOR UPDATE", uri)
		if err != nil {
			return err
		}
		all, err := aliases(ctx, q, uri)
		if err != nil {
			return err
		}
		if err := removeAliases(ctx, q, all, now); err != nil {
			return err
		}
		if _, err := exec(ctx, q, "DELETE FROM resources WHERE uri = $1", uri); err != nil {
			return err
		}
		return cut(ctx, q, storage.Selection{Resource: uri}, storage.ByResource, now)
	})
}

func aliases(ctx context.Context, q querier, uri string) ([]string, error) {
	return each(ctx, q, pgx.RowTo[string],
		"SELECT uri FROM resources WHERE alias_of = $1", uri)
}

// removeAliases removes aliases, and ends their grants.
func removeAliases(ctx context.Context, q querier, aliases []string, now time.Time) error {
	for _, alias := range aliases {
		if _, err := exec(ctx, q, "DELETE FROM resources WHERE uri = $1", alias); err != nil {
			return err
		}
		if err := cut(ctx, q, storage.Selection{Resource: alias}, storage.ByResource, now); err != nil {
			return err
		}
	}
	return nil
}
