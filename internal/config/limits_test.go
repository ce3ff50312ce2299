package config

import (
	"strings"
	"testing"
)

// TestDrain checks that a server drains for at most a minute, and not at all by default (OP-07).
func TestDrain(t *testing.T) {
	for value, good := range map[string]bool{"": true, "0": true, "5s": true, "1m": true, "61s": false, "-1s": false} {
		environ := []string{"HOME=" + t.TempDir()}
		if value != "" {
			environ = append(environ, "MCP_AUTHD_LIMITS_DRAIN="+value)
		}
		l, err := Load(Source{Environ: environ})
		if err == nil {
			err = l.Validate()
		}
		if (err == nil) != good || !good && !strings.Contains(err.Error(), "limits.drain") {
			t.Errorf("OP-07: %q: got %v", value, err)
		}
		if value == "" && l.Limits.Drain != 0 {
			t.Errorf("OP-07: the default is %s", l.Limits.Drain)
		}
	}
}
