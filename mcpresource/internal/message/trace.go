package message

import "encoding/json"

// maxContext bounds each part of a trace context: W3C Trace Context §3.3.1.5 has 512 for tracestate.
const maxContext = 512

// TraceContext returns traceparent and tracestate of params._meta (SEP-414), each "" when it is absent,
// no text or longer than 512 bytes: then it is ignored, since a trace decides nothing (RS-213).
func TraceContext(meta json.RawMessage) (parent, state string) {
	if len(meta) == 0 || meta[0] != '{' {
		return "", ""
	}
	all, err := members(meta, "traceparent", "tracestate")
	if err != nil {
		return "", ""
	}
	text := func(name string) string {
		raw := all.get(name)
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
