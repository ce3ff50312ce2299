package message

import (
	"strings"
	"testing"
)

// TestTraceContext: RS-213: values that are not strings, repeated or too long are ignored.
func TestTraceContext(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	for meta, want := range map[string][2]string{
		`{"traceparent":"p","tracestate":"s","baggage":"b"}`: {"p", "s"},
		`{"traceparent":"p"}`:                                {"p", ""},
		`{"tracestate":"s"}`:                                 {},
		`{"traceparent":"p","traceparent":"q"}`:              {},
		`{"traceparent":"p","Traceparent":"q"}`:              {},
		`{"traceparent":1}`:                                  {},
		`{"traceparent":"` + long + `"}`:                     {},
		`{"traceparent":"p","tracestate":"` + long + `"}`:    {"p", ""},
		`["traceparent"]`:                                    {}, `null`: {}, ``: {},
	} {
		if parent, state := TraceContext([]byte(meta)); parent != want[0] || state != want[1] {
			t.Errorf("%.60s: got %.60q, %.60q, want %q", meta, parent, state, want)
		}
	}
}
