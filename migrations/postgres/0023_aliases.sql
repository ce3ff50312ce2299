-- needs 10
-- Aliases of resources: other URLs of the same MCP server. Each is a row with name and scopes of its
-- resource, which versions before take for a resource.

ALTER TABLE resources ADD COLUMN IF NOT EXISTS alias_of TEXT REFERENCES resources (uri) ON DELETE CASCADE;
