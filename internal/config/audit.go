package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"time"
)

// Audit configures the audit beyond the server's own log.
type Audit struct {
	// Enabled stores events in the database, in a tamper-evident log.
	Enabled bool `yaml:"enabled"`
	// Required makes responses wait until the events that they depend on are in that log. A
	// response is refused if they cannot be stored.
	Required bool `yaml:"required"`
	// Detail says how routine events are recorded: DetailStandard or DetailFull. If empty, it is
	// DetailFull with Required, and DetailStandard otherwise.
	Detail string `yaml:"detail"`
	// Keep is how long entries stay in that log. Their hashes stay permanently. With 0, entries
	// stay permanently.
	Keep Duration `yaml:"keep"`
	// CheckpointFile is a file that receives the newest signed checkpoint each minute.
	CheckpointFile string `yaml:"checkpoint_file"`
	// CheckpointURL is a URL that receives checkpoints by POST.
	CheckpointURL string `yaml:"checkpoint_url"`
	// CheckpointNetworks lists private networks that may contain the URL.
	CheckpointNetworks []string `yaml:"checkpoint_networks"`
	// Sinks are the log destinations of the entries.
	Sinks []AuditSink `yaml:"sinks"`
}

// Values of Audit.Detail.
const (
	DetailStandard = "standard" // similar routine events are counted
	DetailFull     = "full"     // each event has an entry, and a line in the server's log
)

const defaultKeep = 400 * 24 * time.Hour

func defaultAudit() Audit { return Audit{Enabled: true, Keep: Duration(defaultKeep)} }

// Full reports whether each routine event has its own entry.
func (a *Audit) Full() bool { return a.Required || a.Detail == DetailFull }

func (a *Audit) validate(add func(key, format string, args ...any)) {
	a.validateURL(add)
	if a.Required && !a.Enabled {
		add("audit.required", "there is no audit log without audit.enabled")
	}
	if a.Required && a.Detail == DetailStandard {
		add("audit.detail", "it must be full where audit.required is true: an answer cannot wait for an entry that counts "+
			"many")
	}
	if a.Keep != 0 && time.Duration(a.Keep) < 24*time.Hour {
		add("audit.keep", "%s is less than a day; 0 keeps entries permanently", time.Duration(a.Keep))
	}
}

func (a *Audit) validateURL(add func(key, format string, args ...any)) {
	for i, n := range a.CheckpointNetworks {
		if _, err := parseNetwork(n); err != nil {
			add(fmt.Sprintf("audit.checkpoint_networks[%d]", i),
				"%q is not an address or network such as 10.0.0.0/8", n)
		}
	}
	if a.CheckpointURL == "" {
		return
	}
	u, err := url.Parse(a.CheckpointURL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		add("audit.checkpoint_url", "it is not a URL such as https://example.com/checkpoints") // the URL may contain a secret
	case !a.Enabled:
		add("audit.checkpoint_url", "there is no audit log without audit.enabled")
	}
}

// Networks returns CheckpointNetworks, parsed. Validate has checked them.
func (a *Audit) Networks() (out []netip.Prefix) {
	for _, n := range a.CheckpointNetworks {
		if p, err := parseNetwork(n); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// AuditWarning returns a warning about the retention of the audit log, or "".
func (c *Config) AuditWarning() string {
	if c.Audit.Keep == 0 || c.Audit.Keep >= c.Tokens.RefreshMaxTTL {
		return ""
	}
	return "audit.keep is shorter than tokens.refresh_max_ttl: of what an older grant does, the audit log does not " +
		"have the approval any more"
}
