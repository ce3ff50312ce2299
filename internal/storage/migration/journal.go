package migration

import "log/slog"

// Journal logs the migration of a schema: one line for a new database, and one per step of an
// upgrade.
type Journal struct {
	Log     *slog.Logger
	created Step // the last step of a new database
}

// Applied records an applied step.
func (j *Journal) Applied(s Step) {
	if s.Version == 1 || j.created.Version > 0 {
		j.created = s
		return
	}
	j.Log.Info("schema migrated", "version", s.Version, "name", s.Name)
}

// Close ends the journal, after the last step or a failure.
func (j *Journal) Close() {
	if j.created.Version > 0 {
		j.Log.Info("schema created", "version", j.created.Version)
	}
}
