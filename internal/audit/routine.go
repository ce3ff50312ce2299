package audit

import (
	"log/slog"
	"slices"
)

// Routine reports whether an event belongs to normal operation: a refreshed token, a token for
// client credentials, or a successful tool call that needed no approval.
func Routine(event string, attrs []slog.Attr) bool {
	switch event {
	case TokenRefreshed:
		return true
	case TokenIssued:
		return has(attrs, "grant_type", "client_credentials")
	case ToolCalled:
		return has(attrs, "outcome", "ok") && index(attrs, "clearance") < 0
	}
	return false
}

func has(attrs []slog.Attr, name, value string) bool {
	i := index(attrs, name)
	return i >= 0 && attrs[i].Value.String() == value
}

func index(attrs []slog.Attr, name string) int {
	return slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == name })
}

// RoutineAt returns a copy of r that logs routine events at level.
func (r *Recorder) RoutineAt(level slog.Level) *Recorder {
	if r == nil {
		return nil
	}
	out := *r
	out.routine = level
	return &out
}

// RoutineLevel returns the log level of routine events and successful requests.
func (r *Recorder) RoutineLevel() slog.Level {
	if r == nil {
		return slog.LevelInfo
	}
	return r.routine
}
