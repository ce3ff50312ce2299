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
)

// nouns is in the order of the menu.
var nouns = []noun{
	people, groups, rules, applications, clients, grants, proposals, attempts, audits, health, tokens, servers,
	providers, trusts, signingKeys, receivers, letters,
}

var grantColumns = []string{"id", "client_name", "user_name", "resource", "scope", "created_at", "paused_at"}

var grants = noun{
	texts:   grantTexts,
	name:    "grant",
	title:   "Grants",
	menu:    menuAccess,
	lead:    "The access that users, or an administrator for a machine, gave each client to an MCP server.",
	columns: grantColumns,
	hide:    []string{"user", "upstream"},
	badges:  map[string]string{},
	rows:    []string{"grant pause", "grant resume", "grant revoke"},
	empty: pages.ConsoleHint{
		Text: "No grants yet. Connect an application to an MCP server: approving it creates a grant.",
	},
}

var clients = noun{
	texts:   clientTexts,
	name:    "client",
	title:   "Clients",
	menu:    menuAccess,
	lead:    "Programs that ask for access: those that registered themselves, and those that you added.",
	columns: []string{"name", "source", "auth_method", "redirect_uris", "last_used_at", "created_at"},
	hide:    []string{"name"},
	shapes: map[string]shape{
		"name": clientName, "redirect_uris": hostsOf,
		"trust": stateBadge(map[string]string{"allow": "good", "ask": "warn", "deny": "bad"}),
	},
	unlisted: "id",
	lists:    map[string]table{"client policy": {}},
	tables: map[string]table{
		"hosts": {
			title:   "Hosts of metadata documents: the first match decides",
			noun:    "client",
			columns: []string{"pattern", "trust", "key"},
		},
		"documents_redirects": {
			title: "Extra redirect URIs for metadata documents", columns: []string{"client_id", "redirect_uris"},
		},
	},
	rows: []string{"client delete"},
	empty: pages.ConsoleHint{
		Text:    "No clients yet. Applications register themselves when they connect to an MCP server. For a machine, add one.",
		Command: "mcp-authd client add --grant client_credentials",
	},
	related: []related{
		{
			table: table{
				title:   "Grants",
				noun:    "grant",
				columns: []string{"id", "user_name", "resource", "scope", "created_at", "paused_at"},
				rows:    []string{"grant pause", "grant resume", "grant revoke"},
				empty:   pages.ConsoleHint{Text: "No grants yet."},
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
	texts:   proposalTexts,
	name:    "proposal",
	title:   "Proposals",
	menu:    menuAccess,
	lead:    "Changes that wait for a second administrator, and those decided in the last 24 hours.",
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
		Text: "No proposals. Changes listed in console.two_administrators wait here for a second administrator.",
	},
}

var attempts = noun{
	texts:   attemptTexts,
	name:    "attempt",
	title:   "Attempts",
	menu:    menuMonitoring,
	lead:    "Each time a client tried to connect, and where it stopped. The error page shows the user the reference.",
	columns: []string{"reference", "started_at", "client_name", "person", "step", "verdict"},
	shapes:  map[string]shape{"client_name": attemptClient, "verdict": attemptVerdict},
	live:    true,
	empty: pages.ConsoleHint{
		Text:    "No attempts in the days that are kept (attempts.keep). Try one:",
		Command: "mcp-authd login MCP_URL",
	},
}

var audits = noun{
	texts: auditTexts,
	name:  "audit",
	title: "Audit log",
	menu:  menuMonitoring,
	lead: "Who did what: sign-ins, approvals, tokens, tool calls and administration. Each entry can be proved with the " +
		"public key of the log.",
	columns: []string{"index", "at", "event", "person", "client_id", "resource", "tool", "outcome", "unproven"},
	shapes:  map[string]shape{"person": auditPerson, "client_id": auditClient, "outcome": outcomeBadge},
	live:    true,
	empty: pages.ConsoleHint{
		Text:    "No entries. With audit.enabled, sign-ins and everything after them are recorded here.",
		Command: "mcp-authd audit list",
	},
	lists: map[string]table{
		"audit sinks": {
			columns: []string{"id", "kind", "format", "waiting", "oldest", "lost", "failed"},
			empty: pages.ConsoleHint{
				Text: "No log destinations. Configure them in audit.sinks: a file, syslog, a webhook or a collector.",
			},
		},
	},
}

var health = noun{
	texts:    healthTexts,
	name:     "health",
	title:    "Health",
	menu:     menuMonitoring,
	lead:     "The database, the clock, replicas, keys, the audit log and the delivery queues.",
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
var letters = noun{texts: mailTexts, name: "mail", title: "Health", start: "health show"}

var tokens = noun{
	texts: tokenTexts,
	name:  "token",
	title: "Check a token",
	menu:  menuMonitoring,
	lead:  "Shows what an access token contains, and why it is refused.",
	start: "token inspect",
}

var servers = noun{
	texts:   serverTexts,
	name:    "resource",
	title:   "MCP servers",
	menu:    menuServers,
	lead:    "The servers that clients can get tokens for, and the scopes that users approve.",
	columns: []string{"name", "uri", "scopes", "upstream", "from", "dpop"},
	hide:    []string{"name", "config", "tool_rules"},
	shapes:  map[string]shape{"scopes": scopeNames},
	rows:    []string{"resource remove"},
	backs:   map[string]string{"resource accept": "resource tools"},
	lists: map[string]table{
		"resource tools": {
			one: "resource tool", rows: []string{"resource accept"},
			columns: []string{"name", "state", "held", "accepted_at", "accepted_by", "offered_at"},
			shapes:  map[string]shape{"state": stateBadge(toolTones), "held": heldBack},
			empty: pages.ConsoleHint{
				Text: "No tools seen. No client has listed the tools yet, or the MCP server is not behind the gateway.",
			},
		},
	},
	tables: map[string]table{
		"scopes": {
			title:   "Scopes",
			columns: []string{"name", "description", "default", "required", "dangerous", "access"},
		},
		"rules": {title: "Access rules", columns: ruleColumns},
		"tools": {
			title: "Rules for tools", columns: []string{"name", "scopes", "denied", "direct", "clearance"},
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
		Text:    "No MCP servers yet, so no client can get a token. Add one by its URL.",
		Command: "mcp-authd resource add URL",
	},
}

var providers = noun{
	texts: providerTexts,
	name:  "provider",
	title: "Identity providers",
	menu:  menuServers,
	lead:  "Where users sign in with an account that they already have.",
	columns: []string{
		"name", "id", "type", "issuer", "domains", "redirect_uri", "metadata_read_at", "keys_read_at", "failed",
		"unanswered", "resting",
	},
	badges: map[string]string{"unanswered": "warn", "resting": "warn"},
	empty: pages.ConsoleHint{
		Text: "No identity providers: users sign in with a password or passkey. Configure providers in thirdparty.",
	},
}

var receivers = noun{
	texts:   receiverTexts,
	name:    "events",
	title:   "Event receivers",
	menu:    menuServers,
	lead:    "Systems that are told about security events (events.receivers), and the queue of each.",
	columns: []string{"id", "waiting", "oldest", "tries", "failed", "configured"},
	rows:    []string{"events test"},
	empty: pages.ConsoleHint{
		Text: "No receivers. Those configured in events.receivers are told when sessions and credentials end.",
	},
}

var trusts = noun{
	texts:   trustTexts,
	name:    "trust",
	title:   "Trusted issuers",
	menu:    menuServers,
	lead:    "Issuers whose assertions are accepted, in the order in which they are tried.",
	columns: []string{"id", "kind", "issuer", "from", "disabled_at", "problem"},
	rows:    []string{"trust disable", "trust enable"},
	tables: map[string]table{"links": {
		title: "Linked users", columns: []string{"subject", "kind", "user_name", "by", "created_at"},
	}},
	empty: pages.ConsoleHint{
		Text:    "No trusted issuers. One lets users of an organization, or programs of a platform, get tokens with an assertion.",
		Command: "mcp-authd trust add --help",
	},
}

var signingKeys = noun{
	texts: keyTexts,
	name:  "keys",
	title: "Signing keys",
	menu:  menuServers,
	lead: "The active key signs tokens. The next key is published ahead of its use, and a retired one stays until the " +
		"tokens that it signed expire.",
	columns: []string{
		"kid", "alg", "state", "created_at", "activates_at", "activated_at", "retired_at", "expires_at",
	},
	shapes: map[string]shape{"state": stateBadge(map[string]string{"active": "good", "next": "", "retired": ""})},
	rows:   []string{"keys revoke"},
	empty:  pages.ConsoleHint{Text: "No signing keys. A running server creates one."},
}
