package config

import (
	"strings"
	"testing"
)

// TestReplicaName checks that the name of a replica is short and valid for any host name.
func TestReplicaName(t *testing.T) {
	long := strings.Repeat("a", maxReplicaName)
	for name, want := range map[string]bool{
		"web-1": true, "web_1.example": true, long: true,
		long + "a": false, "-web": false, "two words": false, "a\nb": false, "é": false,
	} {
		c := Default(func(string) string { return "" })
		c.Replica = name
		err := c.Validate()
		if got := err == nil || !strings.Contains(err.Error(), "replica: "); got != want {
			t.Errorf("%q: got %v", name, err)
		}
		if want && c.ReplicaName() != name {
			t.Errorf("%q: got %q", name, c.ReplicaName())
		}
	}
	for host, want := range map[string]string{
		"web-1.example": "web-1.example", "my box": "my-box", "\x1b[2Jx": "2Jx",
		"": "unnamed", "é": "unnamed", long + "b": long,
	} {
		if got := hostLabel(host); got != want {
			t.Errorf("host %q: got %q, want %q", host, got, want)
		}
	}
	if got := Default(func(string) string { return "" }).ReplicaName(); got == "" {
		t.Error("no name by default")
	}
}
