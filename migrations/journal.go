package migrations

import "log/slog"

// Journal logs what becomes of a schema: a new database is one line, an upgrade one for each step.
type Journal struct {
	Log     *slog.Logger
	created Step // the last step of a new database
}

// Applied takes note of a step that was applied.
func (j *Journal) Applied(s Step) {
	if s.Version == 1 || j.created.Version > 0 {
		j.created = s
		return
	}
	j.Log.Info("schema migrated", "version", s.Version, "name", s.Name)
}

// Close ends the journal, when no step is left or one has failed.
func (j *Journal) Close() {
	if j.created.Version > 0 {
		j.Log.Info("schema created", "version", j.created.Version)
	}
}
