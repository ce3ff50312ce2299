-- needs 1
-- Where the gateway reaches an MCP server, and its rules for the server's tools as JSON; '' for none. A server of
-- an earlier version does not serve it.

ALTER TABLE resources ADD COLUMN upstream TEXT NOT NULL DEFAULT '';
ALTER TABLE resources ADD COLUMN tool_rules TEXT NOT NULL DEFAULT '';
