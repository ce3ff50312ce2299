package audit

import "log/slog"

// formerly maps events to their previous names. For one minor version, events and metrics have
// both, so that users can change filters and alerts one by one (see CHANGELOG.md).
var formerly = map[string]string{
	ProviderSignedIn:    "upstream.signed_in",
	ProviderLinked:      "upstream.linked",
	ProviderRefused:     "upstream.refused",
	ProviderAbandoned:   "upstream.abandoned",
	ProviderEnded:       "upstream.ended",
	ProviderUnreachable: "upstream.unreachable",
}

// Formerly returns the previous name of a renamed event, or "". The log contains it as "formerly".
func Formerly(event string) string { return formerly[event] }

// Current returns the current name of an event, given its current or previous name.
func Current(name string) string {
	for event, old := range formerly {
		if name == old {
			return event
		}
	}
	return name
}

// ProviderSession returns the id of a user's session at a provider. For one minor version, the
// previous field "upstream" repeats it.
func ProviderSession(id string) slog.Attr {
	return slog.Group("", slog.String("provider_session", id), slog.String("upstream", id))
}

// Purpose returns the reason for sending a browser to a provider. For one minor version, the
// previous field "errand" repeats it.
func Purpose(purpose string) slog.Attr {
	return slog.Group("", slog.String("purpose", purpose), slog.String("errand", purpose))
}
