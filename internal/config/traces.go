package config

import (
	"fmt"
	"net/textproto"
	"net/url"
	"strings"
)

// Traces says where spans of OpenTelemetry are sent.
type Traces struct {
	// Enabled sends them.
	Enabled bool `yaml:"enabled"`
	// Endpoint is the URL of the collector, without /v1/traces. Without it the environment of
	// OpenTelemetry names the collector, or it is at http://localhost:4318.
	Endpoint string   `yaml:"endpoint"`
	Headers  []Secret `yaml:"headers"` // "Name: value", sent with each request
	// Sample is which part of the traces is sent, above 0 and up to 1, which is all.
	Sample float64 `yaml:"sample"`
	// Arguments puts the arguments of tool calls through the gateway into spans.
	Arguments bool `yaml:"arguments"`
}

func defaultTraces() Traces { return Traces{Sample: 1} }

// Header is Headers by name. Validate has checked them.
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
		add("traces.endpoint", "it is not a URL such as http://localhost:4318") // it may hold a secret
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
