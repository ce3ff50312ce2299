package console

import (
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

var people = noun{
	name:    "user",
	title:   "People",
	menu:    menuAccess,
	lead:    "Who can sign in here, and what they have allowed applications.",
	columns: []string{"name", "role", "disabled", "mail", "last_login_at", "created_at"},
	hide:    []string{"name", "admin", "more_grants"},
	badges:  map[string]string{"disabled": "bad"},
	begins:  []string{"user invite"},
	early:   []string{"user links withdraw"},
	rows:    []string{"user recover", "user enable", "user disable"},
	empty: pages.ConsoleHint{
		Text: "There is no account yet. Make one, or invite a person by a link.", Command: "mcp-authd user invite NAME",
	},
	tables: map[string]table{
		"provider_groups": {title: "Groups by providers", columns: []string{"group", "provider", "provider_group"}},
		"grants": {
			title:   "What the person allowed",
			noun:    "grant",
			columns: []string{"client_name", "resource", "scope", "created_at", "paused_at"},
			rows:    []string{"grant pause", "grant resume", "grant revoke"},
			empty:   pages.ConsoleHint{Text: "No application. A grant comes to be when the person approves one."},
		},
	},
	lists: map[string]table{
		"user links": {
			title:   "One-time links",
			columns: []string{"name", "kind", "role", "groups", "mail", "not_before", "expires_at", "created_at"},
			rows:    []string{"user links withdraw"},
			empty: pages.ConsoleHint{
				Text:    "No link can still be used. A link invites a person, or lets one back in.",
				Command: "mcp-authd user invite NAME",
			},
		},
	},
	related: []related{
		{
			table: table{
				title:   "Ways in",
				columns: []string{"kind", "name", "works", "left", "last_used_at", "created_at"},
				rows:    []string{"user ways remove"},
				as:      map[string]string{"way": "id"},
				empty: pages.ConsoleHint{
					Text:    "Nothing lets this person in. Give them a link by which they choose a password or make a passkey.",
					Command: "mcp-authd user recover NAME",
				},
			},
			list: "user ways", field: "name", filter: "name",
		},
		{
			table: table{
				title:   "Accounts at providers",
				columns: []string{"connector", "label", "subject", "by", "last_used_at", "created_at"},
			},
			list: "user identities", field: "name", filter: "name",
		},
		{
			table: table{
				title:   "Browsers in which the person is signed in",
				columns: []string{"browser", "network", "methods", "seen_at", "proved_at", "expires_at"},
				rows:    []string{"user sessions end"},
				as:      map[string]string{"session": "id"},
				empty:   pages.ConsoleHint{Text: "None."},
			},
			list: "user sessions", field: "name", filter: "name",
		},
		{
			table: table{
				title:   "One-time links that can still be used",
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
	name:    "group",
	title:   "Groups",
	menu:    menuAccess,
	lead:    "Groups of people, which rules give scopes of MCP servers.",
	columns: []string{"group", "description", "members", "created_at"},
	rows:    []string{"group delete"},
	tables: map[string]table{
		"users":           {title: "Members", columns: []string{"user_name", "added_at"}},
		"provider_groups": {title: "Members by groups of providers", columns: []string{"provider", "provider_group"}},
		"rules":           {title: "What they may have", columns: ruleColumns},
	},
	empty: pages.ConsoleHint{
		Text: "There is no group yet. Put people into one, and set a rule for it.", Command: "mcp-authd group add NAME USER",
	},
}

var ruleColumns = []string{"resource", "user", "group", "everyone", "scopes", "all", "approve", "set_at"}

var rules = noun{
	name:    "rule",
	title:   "Access rules",
	menu:    menuAccess,
	lead:    "Which people and groups may have which scopes, and must approve which calls. MCP servers without a rule are open to everyone.",
	columns: ruleColumns,
	empty: pages.ConsoleHint{
		Text:    "There is no rule, so every person may have every scope of every MCP server.",
		Command: "mcp-authd rule set --user NAME --resource URL --scopes SCOPE",
	},
}

var applications = noun{
	name:  "application",
	title: "Applications",
	menu:  menuAccess,
	lead: "The programs that people have connected, each with all of its registrations. An unverified name is what the " +
		"program calls itself: two programs of one name are told apart by where they send people back to.",
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
		Text: "There is none yet. An application is here when a person has approved it.",
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
