package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// ReplaceResource implements storage.Resources.
func (s *Store) ReplaceResource(ctx context.Context, r storage.Resource, now time.Time) error {
	return s.write(ctx, "ReplaceResource", func(c *conn) error {
		name, scopes := r.Name, column.List(r.Scopes)
		err := changed(storage.ErrNotFound)(
			c.exec(`UPDATE resources SET name = ?, scopes = ?, dpop = ?, upstream = ?, tool_rules = ?
				WHERE uri = ? AND alias_of IS NULL`, name, scopes, r.DPoP, r.Upstream, column.ToolRules(r), r.URI))
		if err != nil {
			return err
		}
		// read by versions that know no aliases
		_, err = c.exec("UPDATE resources SET name = ?, scopes = ?, dpop = ? WHERE alias_of = ?",
			name, scopes, r.DPoP, r.URI)
		if err != nil {
			return err
		}
		had, err := aliases(c, r.URI)
		if err != nil {
			return err
		}
		gone := slices.DeleteFunc(slices.Clone(had), func(a string) bool { return slices.Contains(r.Aliases, a) })
		if err := removeAliases(c, gone, now); err != nil {
			return err
		}
		r.CreatedAt = now
		return portable.AddAddresses(portableConn{c}, slices.DeleteFunc(column.Addresses(r)[1:],
			func(row column.Address) bool { return slices.Contains(had, row.URI) }))
	})
}

// RemoveResource implements storage.Resources.
func (s *Store) RemoveResource(ctx context.Context, uri string, now time.Time) error {
	return s.write(ctx, "RemoveResource", func(c *conn) error {
		all, err := aliases(c, uri)
		if err != nil {
			return err
		}
		if err := removeAliases(c, all, now); err != nil {
			return err
		}
		err = changed(storage.ErrNotFound)(c.exec("DELETE FROM resources WHERE uri = ? AND alias_of IS NULL", uri))
		if err != nil {
			return err
		}
		return cut(c, storage.Selection{Resource: uri}, storage.ByResource, now)
	})
}

func aliases(c *conn, uri string) ([]string, error) {
	return each(c, func(row scanner) (alias string, err error) {
		err = row.Scan(&alias)
		return alias, err
	}, "SELECT uri FROM resources WHERE alias_of = ?", uri)
}

// removeAliases removes aliases, and ends their grants.
func removeAliases(c *conn, aliases []string, now time.Time) error {
	for _, alias := range aliases {
		if _, err := c.exec("DELETE FROM resources WHERE uri = ?", alias); err != nil {
			return err
		}
		if err := cut(c, storage.Selection{Resource: alias}, storage.ByResource, now); err != nil {
			return err
		}
	}
	return nil
}
