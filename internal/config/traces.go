package config

import (
	"fmt"
	"net/textproto"
	"net/url"
	"strings"
)

// Traces configures the export of OpenTelemetry spans.
type Traces struct {
	// Enabled exports them.
	Enabled bool `yaml:"enabled"`
	// Endpoint is the URL of the collector, without /v1/traces. The default comes from
	// OpenTelemetry's environment variables, or is http://localhost:4318.
	Endpoint string   `yaml:"endpoint"`
	Headers  []Secret `yaml:"headers"` // "Name: value", sent with each request
	// Sample is the fraction of traces to export, above 0 and at most 1.
	Sample float64 `yaml:"sample"`
	// Arguments includes the arguments of tool calls through the gateway.
	Arguments bool `yaml:"arguments"`
}

func defaultTraces() Traces { return Traces{Sample: 1} }

// Header returns Headers by name. Validate has checked them.
func (t *Traces) Header() map[string]string {
	h := map[string]string{}
	for _, line := range t.Headers {
		if name, value, ok := strings.Cut(string(line), ":"); ok {
			h[textproto.TrimString(name)] = textproto.TrimString(value)
		}
	}
	return h
}

func (t *Traces) validate(add func(string, string, ...any)) {
	if u, err := url.Parse(t.Endpoint); t.Endpoint != "" && (err != nil || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http") {
		add("traces.endpoint", "it is not a URL such as http://localhost:4318") // the URL may contain a secret
	}
	for i, h := range t.Headers {
		if wrongHeader(h) {
			add(fmt.Sprintf("traces.headers[%d]", i), "is not of the form Name: value")
		}
	}
	if !(t.Sample > 0 && t.Sample <= 1) {
		add("traces.sample", "is %v, and may be above 0 and up to 1", t.Sample)
	}
}
