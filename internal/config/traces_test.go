package config

import (
	"maps"
	"strings"
	"testing"
)

// TestTraces checks that traces are off by default, and that errors in their configuration reveal
// no secret (OB-08).
func TestTraces(t *testing.T) {
	if c := Default(func(string) string { return "" }); c.Traces.Enabled {
		t.Error("traces are on by default")
	}
	for name, tt := range map[string]struct {
		environ []string
		want    string // in the error
	}{
		"a collector":      {[]string{"ENDPOINT=https://otel.example.com/base"}, ""},
		"a tenth":          {[]string{"SAMPLE=0.1"}, ""},
		"no URL":           {[]string{"ENDPOINT=localhost:4318"}, "traces.endpoint: it is not a URL"},
		"a password in it": {[]string{"ENDPOINT=https://u:SECRET@otel.example.com"}, "traces.endpoint: it is not a URL"},
		"no part":          {[]string{"SAMPLE=0"}, "traces.sample: is 0"},
		"more than all":    {[]string{"SAMPLE=1.5"}, "traces.sample: is 1.5"},
		"not a number":     {[]string{"SAMPLE=NaN"}, "traces.sample: is NaN"},
		"no header":        {[]string{"HEADERS=SECRET"}, "traces.headers[0]: is not of the form Name: value"},
	} {
		environ := []string{"HOME=/nowhere"}
		for _, e := range tt.environ {
			environ = append(environ, "MCP_AUTHD_TRACES_"+e)
		}
		l, err := Load(Source{Environ: environ})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		switch err := l.Validate(); {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		case err != nil && strings.Contains(err.Error(), "SECRET"):
			t.Errorf("%s: got %v", name, err)
		}
	}
	l, err := Load(Source{Environ: []string{"MCP_AUTHD_TRACES_HEADERS=Api-Key: k, X-Tenant:t"}})
	if want := map[string]string{"Api-Key": "k", "X-Tenant": "t"}; err != nil || !maps.Equal(l.Traces.Header(), want) {
		t.Errorf("got %v, %v, want %v", l.Traces.Header(), err, want)
	}
}
