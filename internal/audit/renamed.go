package audit

import "log/slog"

// formerly are the names that events had in the version before. For one minor version, events
// and metrics have both, so that filters and alerts can be changed one by one (see CHANGELOG.md).
var formerly = map[string]string{
	ProviderSignedIn:    "upstream.signed_in",
	ProviderLinked:      "upstream.linked",
	ProviderRefused:     "upstream.refused",
	ProviderAbandoned:   "upstream.abandoned",
	ProviderEnded:       "upstream.ended",
	ProviderUnreachable: "upstream.unreachable",
}

// Formerly returns the name that an event had in the version before, or "" if it has not
// changed. The log has it as the field "formerly".
func Formerly(event string) string { return formerly[event] }

// Current returns the name of an event that a log, possibly of the version before, has as name.
func Current(name string) string {
	for event, old := range formerly {
		if name == old {
			return event
		}
	}
	return name
}

// ProviderSession is the id of a person's sign-in at a provider. For one minor version it is
// in the field "upstream" as well, as before.
func ProviderSession(id string) slog.Attr {
	return slog.Group("", slog.String("provider_session", id), slog.String("upstream", id))
}

// Purpose is what a browser was sent to a provider for. For one minor version it is in the
// field "errand" as well, as before.
func Purpose(purpose string) slog.Attr {
	return slog.Group("", slog.String("purpose", purpose), slog.String("errand", purpose))
}
