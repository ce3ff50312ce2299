package mcp

import "strings"

// methods are those of all revisions and of the extension of tasks.
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

// families are the beginnings of methods for which rules go by the beginning.
var families = []string{"completion/", "notifications/", "prompts/", "resources/", "subscriptions/", "tasks/", "tools/"}

// Mistaken reports whether a lenient server could take a method for one of MCP that it is not: it differs from one, or
// from the beginning of a family of them, by case, Unicode folding (U+017F, U+212A) or white space around it alone.
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
