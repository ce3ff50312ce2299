package auditlog

import (
	"log/slog"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/audit"
)

// spared returns the attributes of an event without those that say nothing more than the rest of
// its sign-in (OP-02). attrs stays as it is, because others read it too.
func spared(event string, attrs []slog.Attr) []slog.Attr {
	text := func(name string) string {
		for _, a := range attrs {
			if a.Key == name {
				return a.Value.String()
			}
		}
		return ""
	}
	var drop []string
	if text("resource_match") == "exact" {
		drop = append(drop, "resource_match")
	}
	switch {
	case event == audit.ConsentApproved && text("shown_client") == text("client_name"):
		drop = append(drop, "client_name")
	case event == audit.TokenIssued && text("grant_type") == "authorization_code":
		// The approval of the grant has the name, and the scopes unless the token lacks some.
		drop = append(drop, "client_name")
		if text("scope_unproved") == "" {
			drop = append(drop, "scope")
		}
	}
	if len(drop) == 0 {
		return attrs
	}
	return slices.DeleteFunc(slices.Clone(attrs), func(a slog.Attr) bool { return slices.Contains(drop, a.Key) })
}
