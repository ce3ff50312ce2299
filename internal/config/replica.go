package config

import (
	"os"
	"regexp"
	"strings"
)

// maxReplicaName limits the name of a replica, in bytes.
const maxReplicaName = 64

var replicaName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (c *Config) validateReplica(add func(key, format string, args ...any)) {
	if c.Replica != "" && (len(c.Replica) > maxReplicaName || !replicaName.MatchString(c.Replica)) {
		add("replica", "%q is no name of up to %d letters, digits, dots, dashes and underscores", c.Replica,
			maxReplicaName)
	}
}

// ReplicaName returns the name of this server among the replicas: the configured name, or the host
// name.
func (c *Config) ReplicaName() string {
	if c.Replica != "" {
		return c.Replica
	}
	host, err := os.Hostname()
	if err != nil {
		return "unnamed"
	}
	return hostLabel(host)
}

// hostLabel turns a host name into a valid name of a replica. It replaces invalid characters with
// dashes.
func hostLabel(host string) string {
	name := strings.Map(func(r rune) rune {
		if replicaName.MatchString("a" + string(r)) {
			return r
		}
		return '-'
	}, host[:min(len(host), maxReplicaName)])
	if name = strings.TrimLeft(name, "-._"); name == "" {
		return "unnamed"
	}
	return name
}
