package message

import "encoding/json"

// maxContext is the maximum length of each part of a trace context: W3C Trace Context §3.3.1.5 has
// 512 for tracestate.
const maxContext = 512

// TraceContext returns traceparent and tracestate of params._meta (SEP-414). Each is "" if it is
// absent, not a string, or longer than 512 bytes: invalid values are ignored, because a trace does
// not affect decisions (RS-213).
func TraceContext(meta json.RawMessage) (parent, state string) {
	if len(meta) == 0 || meta[0] != '{' {
		return "", ""
	}
	all, err := members(meta, "traceparent", "tracestate")
	if err != nil {
		return "", ""
	}
	text := func(name string) string {
		raw := all.Get(name)
		if len(raw) > maxContext+2 {
			return ""
		}
		s, _ := plainString(raw)
		return s
	}
	if parent = text("traceparent"); parent == "" {
		return "", ""
	}
	return parent, text("tracestate")
}
