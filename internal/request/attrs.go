package request

import (
	"log/slog"
	"slices"
	"strings"
)

func index(attrs []slog.Attr, key string) int {
	return slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == key })
}

// flat expands nameless groups, drops empty attributes, and shortens text. The result has capacity
// for more attributes.
func flat(attrs []slog.Attr, more int) []slog.Attr {
	for _, a := range attrs {
		if a.Value.Kind() == slog.KindGroup {
			more += len(a.Value.Group())
		}
	}
	return appendFlat(make([]slog.Attr, 0, len(attrs)+more), attrs)
}

func appendFlat(out, attrs []slog.Attr) []slog.Attr {
	for _, a := range attrs {
		switch {
		case a.Value.Kind() == slog.KindGroup && a.Key == "":
			out = appendFlat(out, a.Value.Group())
		case a.Equal(slog.Attr{}), a.Value.Kind() == slog.KindString && a.Value.String() == "":
		case a.Value.Kind() == slog.KindString:
			out = append(out, slog.String(a.Key, Text(a.Value.String())))
		default:
			out = append(out, a)
		}
	}
	return out
}

// maxText limits an attribute, in bytes. Client ids that contain a registration are about this
// long.
const maxText = 600

// Text shortens a text that a caller chose to maxText bytes.
func Text(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}
