package config

// Audit says what becomes of the audit beyond the server's log.
type Audit struct {
	// Enabled has events kept in the database, as a log that shows whether it was changed.
	Enabled bool `yaml:"enabled"`
	// Required has answers wait until what they rest on is in that log, and be refused when it is not.
	Required bool `yaml:"required"`
	// CheckpointFile is where the newest signed checkpoint of that log is written each minute.
	CheckpointFile string `yaml:"checkpoint_file"`
}

func defaultAudit() Audit { return Audit{Enabled: true} }

func (a *Audit) validate(add func(key, format string, args ...any)) {
	if a.Required && !a.Enabled {
		add("audit.required", "there is no audit log without audit.enabled")
	}
}
