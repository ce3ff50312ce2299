package mcp

import "strings"

// methods lists the methods of all revisions and of the tasks extension.
var methods = []string{
	"completion/complete", "elicitation/create", "initialize", "logging/setLevel",
	"notifications/cancelled", "notifications/elicitation/complete", "notifications/initialized",
	"notifications/message", "notifications/progress", "notifications/prompts/list_changed",
	"notifications/resources/list_changed", "notifications/resources/updated", "notifications/roots/list_changed",
	"notifications/tasks/status", "notifications/tools/list_changed", "ping", "prompts/get", "prompts/list",
	"resources/list", "resources/read", "resources/subscribe", "resources/templates/list", "resources/unsubscribe",
	"roots/list", "sampling/createMessage", "server/discover", "subscriptions/listen", "tasks/cancel", "tasks/get",
	"tasks/list", "tasks/result", "tasks/update", "tools/call", "tools/list",
}

// families lists the prefixes of methods that have rules for a whole family.
var families = []string{"completion/", "notifications/", "prompts/", "resources/", "subscriptions/", "tasks/", "tools/"}

// Mistaken reports whether a lenient server could confuse a method with one of MCP. That is so if
// it differs from an MCP method, or from a prefix in families, only by case, Unicode folding
// (U+017F, U+212A) or surrounding white space.
func Mistaken(method string) bool {
	plain := strings.TrimSpace(method)
	for _, m := range methods {
		if plain != m && strings.EqualFold(plain, m) || plain == m && plain != method {
			return true
		}
	}
	for _, f := range families {
		family, _, ok := strings.Cut(plain, "/")
		if family += "/"; ok && family != f && strings.EqualFold(family, f) {
			return true
		}
	}
	return false
}
