package config

// Audit says what becomes of the audit beyond the server's log.
type Audit struct {
	// Enabled has events kept in the database, as a log that shows whether it was changed.
	Enabled bool `yaml:"enabled"`
	// CheckpointFile is where the newest signed checkpoint of that log is written each minute.
	CheckpointFile string `yaml:"checkpoint_file"`
}

func defaultAudit() Audit { return Audit{Enabled: true} }
