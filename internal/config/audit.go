package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"time"
)

// Audit says what becomes of the audit beyond the server's log.
type Audit struct {
	// Enabled has events kept in the database, as a log that shows whether it was changed.
	Enabled bool `yaml:"enabled"`
	// Required has answers wait until what they rest on is in that log, and be refused when it is not.
	Required bool `yaml:"required"`
	// Detail says how routine events are recorded: DetailStandard or DetailFull. Empty: DetailFull where Required,
	// DetailStandard elsewhere.
	Detail string `yaml:"detail"`
	// Keep is how long entries stay in that log; their hashes stay permanently. 0: entries stay permanently.
	Keep Duration `yaml:"keep"`
	// CheckpointFile is where the newest signed checkpoint of that log is written each minute.
	CheckpointFile string `yaml:"checkpoint_file"`
	// CheckpointURL is where it is posted to.
	CheckpointURL string `yaml:"checkpoint_url"`
	// CheckpointNetworks are those of the operator that the URL may be in, though they are private.
	CheckpointNetworks []string `yaml:"checkpoint_networks"`
	// Sinks are to what else the entries go.
	Sinks []AuditSink `yaml:"sinks"`
}

// Values of Audit.Detail.
const (
	DetailStandard = "standard" // routine events that are alike are counted
	DetailFull     = "full"     // each event has its entry, and its line in the server's log
)

const defaultKeep = 400 * 24 * time.Hour

func defaultAudit() Audit { return Audit{Enabled: true, Keep: Duration(defaultKeep)} }

// Full reports whether each routine event has an entry of its own.
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
		add("audit.checkpoint_url", "it is not a URL such as https://example.com/checkpoints") // it may hold a secret
	case !a.Enabled:
		add("audit.checkpoint_url", "there is no audit log without audit.enabled")
	}
}

// Networks are CheckpointNetworks. Validate has checked them.
func (a *Audit) Networks() (out []netip.Prefix) {
	for _, n := range a.CheckpointNetworks {
		if p, err := parseNetwork(n); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// AuditWarning says what is to be expected of how long the audit log is kept, "" for nothing.
func (c *Config) AuditWarning() string {
	if c.Audit.Keep == 0 || c.Audit.Keep >= c.Tokens.RefreshMaxTTL {
		return ""
	}
	return "audit.keep is shorter than tokens.refresh_max_ttl: of what an older grant does, the audit log does not " +
		"have the approval any more"
}
