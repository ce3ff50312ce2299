package console

import (
	"strings"

	"github.com/mcp-authd/mcp-authd/web"
)

// noun is what is particular about the pages of what an operator works with.
type noun struct {
	name  string // the first word of its operations
	title string
	room  string
	lead  string
	// columns of the list, by the names of the fields; nil: the first of them.
	columns []string
	// badges are fields that are told beside the heading and in the list when they are true, with their
	// tone.
	badges map[string]string
	empty  web.ConsoleHint
	// related are lists about one thing, on its page.
	related []related
}

// related is a list on the page of one thing: of an operation, with the field of the thing as its field.
type related struct {
	title, list   string
	field, filter string
	columns       []string
}

// begin is the operation with which a noun begins: its list.
func (n noun) begin() string { return n.name + " list" }

// nouns are in the order of the menu.
var nouns = []noun{
	{
		name:    "user",
		title:   "People",
		room:    "Access",
		lead:    "Who can sign in here, and what they have allowed applications.",
		columns: []string{"name", "role", "disabled", "mail", "last_login_at", "created_at"},
		badges:  map[string]string{"disabled": "bad"},
		empty: web.ConsoleHint{
			Text: "There is no account yet. Make one, or invite a person by a link.", Command: "mcp-authd user add NAME",
		},
		related: []related{
			{
				title: "What they allowed", list: "grant list", field: "name", filter: "user",
				columns: []string{"client_name", "client", "resource", "scope", "created_at", "paused_at"},
			},
		},
	},
	{
		name:    "grant",
		title:   "Grants",
		room:    "Access",
		lead:    "What a person, or the operator for a machine, has allowed one client for one MCP server.",
		columns: []string{"id", "user_name", "client_name", "resource", "scope", "created_at", "paused_at"},
		empty: web.ConsoleHint{
			Text: "There is none. A grant comes to be when a person approves an application, so connect one to an MCP server.",
		},
	},
	{
		name:    "client",
		title:   "Clients",
		room:    "Access",
		lead:    "The applications and machines that ask for access: those that registered, and those of the operator.",
		columns: []string{"id", "name", "source", "auth_method", "created_at", "last_used_at"},
		empty: web.ConsoleHint{
			Text: "There is none yet. Applications of people register themselves when they connect to an MCP server; " +
				"a machine gets its client from you.",
			Command: "mcp-authd client add --grant client_credentials",
		},
		related: []related{
			{
				title: "Grants", list: "grant list", field: "id", filter: "client",
				columns: []string{"id", "user_name", "resource", "scope", "created_at", "paused_at"},
			},
		},
	},
}

// nounOf is the noun of an operation; one of its name alone where nothing is particular about it.
func nounOf(name string) noun {
	first, _, _ := strings.Cut(name, " ")
	for _, n := range nouns {
		if n.name == first {
			return n
		}
	}
	return noun{name: first, title: label(first)}
}
