package console

import (
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

var people = noun{
	texts:   userTexts,
	name:    "user",
	title:   "Users",
	menu:    menuAccess,
	lead:    "Accounts that can sign in here.",
	columns: []string{"name", "role", "disabled", "mail", "last_login_at", "created_at"},
	hide:    []string{"name", "admin", "more_grants"},
	badges:  map[string]string{"disabled": "bad"},
	begins:  []string{"user invite"},
	early:   []string{"user links withdraw"},
	rows:    []string{"user recover", "user enable", "user disable"},
	empty: pages.ConsoleHint{
		Text: "No users yet. Invite one, or add an account.", Command: "mcp-authd user invite NAME",
	},
	tables: map[string]table{
		"provider_groups": {
			title: "Groups through identity providers", columns: []string{"group", "provider", "provider_group"},
		},
		"grants": {
			title:   "Connected applications",
			noun:    "grant",
			columns: []string{"client_name", "resource", "scope", "created_at", "paused_at"},
			rows:    []string{"grant pause", "grant resume", "grant revoke"},
			empty:   pages.ConsoleHint{Text: "No applications. One appears here when the user approves it."},
		},
	},
	lists: map[string]table{
		"user links": {
			columns: []string{"name", "kind", "role", "groups", "mail", "not_before", "expires_at", "created_at"},
			rows:    []string{"user links withdraw"},
			empty: pages.ConsoleHint{
				Text:    "No open links. Invite a user, or help one back in with a recovery link.",
				Command: "mcp-authd user invite NAME",
			},
		},
	},
	related: []related{
		{
			table: table{
				title:   "Authentication methods",
				columns: []string{"kind", "name", "works", "left", "last_used_at", "created_at"},
				rows:    []string{"user ways remove"},
				as:      map[string]string{"way": "id"},
				empty: pages.ConsoleHint{
					Text:    "This user cannot sign in. Give them a recovery link: with it they choose a password or a passkey.",
					Command: "mcp-authd user recover NAME",
				},
			},
			list: "user ways", field: "name", filter: "name",
		},
		{
			table: table{
				title:   "Accounts at identity providers",
				columns: []string{"connector", "label", "subject", "by", "last_used_at", "created_at"},
			},
			list: "user identities", field: "name", filter: "name",
		},
		{
			table: table{
				title:   "Signed-in browsers",
				columns: []string{"browser", "network", "methods", "seen_at", "proved_at", "expires_at"},
				rows:    []string{"user sessions end"},
				as:      map[string]string{"session": "id"},
				empty:   pages.ConsoleHint{Text: "Not signed in anywhere."},
			},
			list: "user sessions", field: "name", filter: "name",
		},
		{
			table: table{
				title:   "Open links",
				columns: []string{"kind", "not_before", "expires_at", "created_at"},
				acts:    []string{"user links withdraw"},
			},
			list: "user links", field: "name", filter: "name",
		},
		{
			table: table{
				title: "Attempts", noun: "attempt",
				columns: []string{"reference", "started_at", "client_name", "step", "verdict"},
			},
			list: "attempt list", field: "name", filter: "user",
		},
	},
}

var groups = noun{
	texts:   groupTexts,
	name:    "group",
	title:   "Groups",
	menu:    menuAccess,
	lead:    "Groups of users. Access rules apply to them.",
	columns: []string{"group", "description", "members", "created_at"},
	rows:    []string{"group delete"},
	tables: map[string]table{
		"users": {title: "Members", columns: []string{"user_name", "added_at"}},
		"provider_groups": {
			title: "Members through identity providers", columns: []string{"provider", "provider_group"},
		},
		"rules": {title: "Access rules", columns: ruleColumns},
	},
	empty: pages.ConsoleHint{
		Text: "No groups yet. Add members to a new one, and set an access rule for it.", Command: "mcp-authd group add NAME USER",
	},
}

var ruleColumns = []string{"resource", "user", "group", "everyone", "scopes", "all", "approve", "set_at"}

var rules = noun{
	texts:   ruleTexts,
	name:    "rule",
	title:   "Access rules",
	menu:    menuAccess,
	lead:    "Who may use which MCP servers. An MCP server without a rule is open to everyone.",
	columns: ruleColumns,
	empty: pages.ConsoleHint{
		Text:    "No access rules, so every user may use every MCP server.",
		Command: "mcp-authd rule set --user NAME --resource URL --scopes SCOPE",
	},
}

var applications = noun{
	texts: applicationTexts,
	name:  "application",
	title: "Applications",
	menu:  menuAccess,
	lead: "Programs that users have connected, each with all of its registrations. An unverified name is the program's own " +
		"claim: compare where it sends users back to.",
	columns: []string{"name", "verified", "places", "people", "grants", "registrations", "last_used_at", "state"},
	hide:    []string{"name", "merged"},
	shapes: map[string]shape{
		"name":  clientName,
		"state": stateBadge(map[string]string{"active": "good", "paused": "warn", "blocked": "bad"}),
	},
	tables: map[string]table{
		"clients": {
			title:   "Registrations",
			noun:    "client",
			columns: []string{"name", "source", "redirect_uris", "last_used_at", "created_at"},
		},
	},
	rows: []string{"application merge", "application pause", "application revoke", "application block"},
	empty: pages.ConsoleHint{
		Text: "No applications yet. One appears here when a user approves it.",
	},
	related: []related{
		{
			table: table{
				title: "Attempts", noun: "attempt",
				columns: []string{"reference", "started_at", "person", "step", "verdict"},
			},
			list: "attempt list", field: "id", filter: "application",
		},
		{
			table: table{
				title: "Audit log", noun: "audit", columns: []string{"index", "at", "event", "person", "client_id"},
			},
			list: "audit list", field: "id", filter: "application",
		},
	},
}
