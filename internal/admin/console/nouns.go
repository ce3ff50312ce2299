package console

import (
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// The groups of the menu.
const (
	menuAccess     = "Access"
	menuMonitoring = "Monitoring"
	menuServers    = "Servers"
	menuMore       = "More"
)

// nouns is in the order of the menu.
var nouns = []noun{
	people, groups, rules, applications, clients, grants, proposals, attempts, audits, health, tokens, servers,
	providers, trusts, signingKeys, receivers, letters,
}

var grantColumns = []string{"id", "client_name", "user_name", "resource", "scope", "created_at", "paused_at"}

var grants = noun{
	name:    "grant",
	title:   "Grants",
	menu:    menuAccess,
	lead:    "What a person, or the operator for a machine, has allowed one client for one MCP server.",
	columns: grantColumns,
	hide:    []string{"user", "upstream"},
	badges:  map[string]string{},
	rows:    []string{"grant pause", "grant resume", "grant revoke"},
	empty: pages.ConsoleHint{
		Text: "There is none. A grant comes to be when a person approves an application, so connect one to an MCP server.",
	},
}

var clients = noun{
	name:    "client",
	title:   "Clients",
	menu:    menuAccess,
	lead:    "The applications and machines that ask for access: those that registered, and those of the operator.",
	columns: []string{"name", "source", "auth_method", "redirect_uris", "last_used_at", "created_at"},
	hide:    []string{"name"},
	shapes: map[string]shape{
		"name": clientName, "redirect_uris": hostsOf,
		"trust": stateBadge(map[string]string{"allow": "good", "ask": "warn", "deny": "bad"}),
	},
	unlisted: "id",
	lists:    map[string]table{"client policy": {title: "Which clients are accepted"}},
	tables: map[string]table{
		"hosts": {
			title:   "What is thought of metadata documents, by where they are: the first that fits counts",
			noun:    "client",
			columns: []string{"pattern", "trust", "key"},
		},
		"documents_redirects": {
			title: "Redirect URIs beside those of a document", columns: []string{"client_id", "redirect_uris"},
		},
	},
	rows: []string{"client delete"},
	empty: pages.ConsoleHint{
		Text: "There is none yet. Applications of people register themselves when they connect to an MCP server; " +
			"a machine gets its client from you.",
		Command: "mcp-authd client add --grant client_credentials",
	},
	related: []related{
		{
			table: table{
				title:   "Grants",
				noun:    "grant",
				columns: []string{"id", "user_name", "resource", "scope", "created_at", "paused_at"},
				rows:    []string{"grant pause", "grant resume", "grant revoke"},
				empty:   pages.ConsoleHint{Text: "Nobody has allowed it anything yet."},
			},
			list: "grant list", field: "id", filter: "client",
		},
		{
			table: table{
				title: "Attempts", noun: "attempt",
				columns: []string{"reference", "started_at", "person", "step", "verdict"},
			},
			list: "attempt list", field: "id", filter: "client",
		},
	},
}

var proposals = noun{
	name:    "proposal",
	title:   "Proposals",
	menu:    menuAccess,
	lead:    "Operations that wait for a second administrator, and those that were accepted or declined in the last 24 hours.",
	heading: "operation",
	columns: []string{"operation", "about", "input", "by", "state", "created_at", "expires_at"},
	hide:    []string{"operation"},
	badges:  map[string]string{"state": ""},
	shapes: map[string]shape{
		"input": firstInput,
		"state": stateBadge(map[string]string{"open": "warn", "accepted": "good", "declined": ""}),
	},
	rows: []string{"proposal accept", "proposal decline"},
	empty: pages.ConsoleHint{
		Text: "There is none. What console.two_administrators names is kept here until a second administrator accepts it.",
	},
}

var attempts = noun{
	name:  "attempt",
	title: "Attempts",
	menu:  menuMonitoring,
	lead: "What clients did to get tokens, from reading the metadata to the tokens, or to where it ended. " +
		"A person who was refused has been shown a reference.",
	columns: []string{"reference", "started_at", "client_name", "person", "step", "verdict"},
	shapes:  map[string]shape{"client_name": attemptClient, "verdict": attemptVerdict},
	live:    true,
	empty: pages.ConsoleHint{
		Text:    "Nothing has asked for access in the days that are kept (attempts.keep). Try it as a client would:",
		Command: "mcp-authd login MCP_URL",
	},
}

var audits = noun{
	name:  "audit",
	title: "Audit",
	menu:  menuMonitoring,
	lead: "What was done and who allowed it: sign-ins, consents, tokens, calls of tools, administration. Each entry " +
		"can be proved with the key of the log alone; one that is not proven says why.",
	columns: []string{"index", "at", "event", "person", "client_id", "resource", "tool", "outcome", "unproven"},
	shapes:  map[string]shape{"person": auditPerson, "client_id": auditClient, "outcome": outcomeBadge},
	live:    true,
	empty: pages.ConsoleHint{
		Text:    "There is no entry. With audit.enabled, sign-ins and all that follows them are here.",
		Command: "mcp-authd audit list",
	},
	lists: map[string]table{
		"audit sinks": {
			title: "Sinks", columns: []string{"id", "kind", "format", "waiting", "oldest", "lost", "failed"},
			empty: pages.ConsoleHint{
				Text: "The log goes nowhere else. A sink of the configuration (audit.sinks) takes entries to a file, to " +
					"syslog, to a webhook or to a collector.",
			},
		},
	},
}

var health = noun{
	name:     "health",
	title:    "Health",
	menu:     menuMonitoring,
	lead:     "The database, the clock, replicas, keys, the audit log, and what waits to be delivered.",
	start:    "health show",
	also:     []string{"mail test"},
	captions: map[string]string{"started_at": "Running since"},
	shapes: map[string]shape{
		"name":            replicaName,
		"state":           stateBadge(map[string]string{admin.ReplicaRunning: "good", admin.ReplicaLost: "bad"}),
		"audit_waiting":   auditOfReplica,
		"clock_behind_ms": clockBehind,
	},
}

// letters are sent from the health page, and are not in the menu.
var letters = noun{name: "mail", title: "Health", start: "health show"}

var tokens = noun{
	name:  "token",
	title: "Token",
	menu:  menuMonitoring,
	lead:  "What an access token says, and why it is refused.",
	start: "token inspect",
}

var servers = noun{
	name:    "resource",
	title:   "MCP servers",
	menu:    menuServers,
	lead:    "What clients can get tokens for, and the scopes that people are asked to allow.",
	columns: []string{"name", "uri", "scopes", "upstream", "from", "dpop"},
	hide:    []string{"name", "config", "tool_rules"},
	shapes:  map[string]shape{"scopes": scopeNames},
	rows:    []string{"resource remove"},
	backs:   map[string]string{"resource accept": "resource tools"},
	lists: map[string]table{
		"resource tools": {
			title: "Tools", one: "resource tool", rows: []string{"resource accept"},
			columns: []string{"name", "state", "held", "accepted_at", "accepted_by", "offered_at"},
			shapes:  map[string]shape{"state": stateBadge(toolTones), "held": heldBack},
			empty: pages.ConsoleHint{
				Text: "The gateway has seen no tool of this MCP server: no client has listed its tools yet, or it is not " +
					"behind the gateway.",
			},
		},
	},
	tables: map[string]table{
		"scopes": {
			title:   "Scopes",
			columns: []string{"name", "description", "default", "required", "dangerous", "access"},
		},
		"rules": {title: "Who may have what", columns: ruleColumns},
		"tools": {
			title: "What its tools need", columns: []string{"name", "scopes", "denied", "direct", "clearance"},
		},
	},
	related: []related{
		{
			table: table{
				title:   "Grants",
				noun:    "grant",
				columns: []string{"id", "client_name", "user_name", "scope", "created_at", "paused_at"},
				rows:    []string{"grant pause", "grant resume", "grant revoke"},
				empty: pages.ConsoleHint{
					Text: "No application has access yet. Connect one:", Command: "mcp-authd login MCP_URL",
				},
			},
			list: "grant list", field: "uri", filter: "resource",
		},
	},
	empty: pages.ConsoleHint{
		Text:    "There is none, so no client gets a token. Add the URL of an MCP server.",
		Command: "mcp-authd resource add URL",
	},
}

var providers = noun{
	name:  "provider",
	title: "Providers",
	menu:  menuServers,
	lead:  "Where people sign in with an account that they have elsewhere.",
	columns: []string{
		"name", "id", "type", "issuer", "domains", "redirect_uri", "metadata_read_at", "keys_read_at", "failed",
		"unanswered", "resting",
	},
	badges: map[string]string{"unanswered": "warn", "resting": "warn"},
	empty: pages.ConsoleHint{
		Text: "There is none: people sign in with what they have here. A provider is made in the configuration (thirdparty).",
	},
}

var receivers = noun{
	name:    "events",
	title:   "Event receivers",
	menu:    menuServers,
	lead:    "Who is told of security events (events.receivers), and what waits for each.",
	columns: []string{"id", "waiting", "oldest", "tries", "failed", "configured"},
	rows:    []string{"events test"},
	empty: pages.ConsoleHint{
		Text: "There is none. A receiver of the configuration (events.receivers) is told when sessions and credentials end.",
	},
}

var trusts = noun{
	name:    "trust",
	title:   "Trust",
	menu:    menuServers,
	lead:    "The issuers whose assertions are believed, in the order in which they are tried.",
	columns: []string{"id", "kind", "issuer", "from", "disabled_at", "problem"},
	rows:    []string{"trust disable", "trust enable"},
	tables: map[string]table{"links": {
		title: "Its people", columns: []string{"subject", "kind", "user_name", "by", "created_at"},
	}},
	empty: pages.ConsoleHint{
		Text: "No other issuer is believed here. An entry lets the people of an organization, or workloads of a platform, " +
			"get tokens by an assertion of theirs.",
		Command: "mcp-authd trust add --help",
	},
}

var signingKeys = noun{
	name:  "keys",
	title: "Keys",
	menu:  menuServers,
	lead: "The keys by which this server signs: a next key signs nothing yet, the active one signs, a retired one is " +
		"there for the tokens that it signed.",
	columns: []string{
		"kid", "alg", "state", "created_at", "activates_at", "activated_at", "retired_at", "expires_at",
	},
	shapes: map[string]shape{"state": stateBadge(map[string]string{"active": "good", "next": "", "retired": ""})},
	rows:   []string{"keys revoke"},
}
