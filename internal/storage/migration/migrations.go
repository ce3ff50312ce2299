// Package migration reads the versioned schema of both databases (folder migrations), and decides
// which steps are due.
// The backends run the steps, and choose the locks.
//
// A step is a file NNNN_name.sql. Its number is its version, without gaps. A released step is never
// edited. Steps first expand the schema and contract it a release later, so that the previous
// version keeps working during an upgrade. A step whose first line is "-- needs N" leaves the
// schema usable for programs that know only the steps up to N. Without that line, it needs the
// program that contains it.
//
// schema/sqlite.sql is the result of all steps: the schema in readable form, and the script for new
// SQLite databases.
package migration

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/migrations"
)

// SQLiteSchema returns a script that creates the schema after the steps up to version in an empty
// SQLite database. A test of internal/storage/sqlite checks this. Running the single steps, which change the
// tables of earlier ones, takes five times as long.
func SQLiteSchema() (script string, version int) {
	text, err := migrations.Files.ReadFile("schema/sqlite.sql")
	if err != nil {
		return "", 0
	}
	if _, err := fmt.Sscanf(string(text), "-- steps 1 to %d", &version); err != nil {
		return "", 0
	}
	return string(text), version
}

// ErrNewer is returned if a newer version of the program has migrated the database.
var ErrNewer = errors.New(
	"the database was written by a newer version of mcp-authd: install that version, or restore the backup made before the upgrade",
)

// ErrPending is returned if the database lacks steps of this version.
var ErrPending = errors.New("the database is not migrated: run `mcp-authd migrate up`")

// Engine is a database engine.
type Engine string

// The engines that have migrations.
const (
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
)

// Step is one migration.
type Step struct {
	Version int
	Name    string
	SQL     string
	Needs   int // the last step that a program must know to work with the schema after this one
	// After is how long to wait after the previous step; zero for no wait.
	After time.Duration
	// Concurrently runs each statement in its own transaction, which blocks no writers of its
	// tables. An interrupted step is run again from its beginning.
	Concurrently bool
}

// Statements returns the statements of a step that is run concurrently. Each must end a line.
func (s Step) Statements() (out []string) {
	var b strings.Builder
	for line := range strings.Lines(s.SQL) {
		if strings.HasPrefix(line, "--") || strings.TrimSpace(line) == "" {
			continue
		}
		b.WriteString(line)
		if strings.HasSuffix(strings.TrimSpace(line), ";") {
			out = append(out, b.String())
			b.Reset()
		}
	}
	return out
}

// NumberedRefresh is the name of the step after which refresh tokens have no rows.
const NumberedRefresh = "numbered_refresh"

// Applied is the migration state of a database.
type Applied struct {
	Steps []Status
	Needs int // of the last step; 0 if it needs itself
}

// Note returns the note to store when s is applied. It records the needs of the last step, and
// ReadNote parses it. Later steps inherit the needs of earlier ones.
func (a Applied) Note(s Step) []byte {
	return fmt.Appendf(nil, "%d needs %d", max(s.Version, a.last()), max(s.Needs, a.needs()))
}

func (a Applied) last() (last int) {
	for _, st := range a.Steps {
		last = max(last, st.Version)
	}
	return last
}

func (a Applied) needs() int {
	if a.Needs == 0 {
		return a.last()
	}
	return a.Needs
}

func (a Applied) has(version int) bool {
	return slices.ContainsFunc(a.Steps, func(st Status) bool { return st.Version == version })
}

// Has reports whether the step with a name is applied.
func (a Applied) Has(name string) bool {
	return slices.ContainsFunc(a.Steps, func(st Status) bool { return st.Name == name })
}

// ReadNote returns the Needs of the last applied step, or 0 if the note does not contain it.
func ReadNote(applied []Status, note []byte) int {
	var version, needs int
	if _, err := fmt.Sscanf(string(note), "%d needs %d", &version, &needs); err != nil {
		return 0
	}
	for _, a := range applied {
		if a.Version > version {
			return 0
		}
	}
	return needs
}

// Status is a step with the time when it was applied.
type Status struct {
	Version   int       `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"` // zero for pending
	DueAt     time.Time `json:"due_at,omitzero"`     // when a deferred pending step is due
}

// Steps returns the migrations of an engine in order of version. It fails only if the embedded
// files are misnamed.
func Steps(e Engine) ([]Step, error) {
	names, err := fs.Glob(migrations.Files, string(e)+"/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]Step, 0, len(names))
	for _, path := range names {
		s, err := step(path)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.Version, b.Version) })
	for i, s := range steps {
		if s.Version != i+1 {
			return nil, fmt.Errorf("migration: %s has version %d where %d was expected", s.Name, s.Version, i+1)
		}
	}
	return steps, nil
}

func step(path string) (Step, error) {
	base := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".sql")
	number, name, ok := strings.Cut(base, "_")
	version, err := strconv.Atoi(number)
	if !ok || err != nil {
		return Step{}, fmt.Errorf("migration: %s is not named NNNN_name.sql", path)
	}
	sql, err := migrations.Files.ReadFile(path)
	if err != nil {
		return Step{}, err
	}
	s := Step{Version: version, Name: name, SQL: string(sql), Needs: version}
	if err := s.readHead(); err != nil {
		return Step{}, fmt.Errorf("migration: %s: %w", path, err)
	}
	return s, nil
}

// readHead parses the lines at the head of a step that say how to apply it.
func (s *Step) readHead() (err error) {
	for line := range strings.Lines(s.SQL) {
		line = strings.TrimSuffix(line, "\n")
		if n, ok := strings.CutPrefix(line, "-- needs "); ok {
			if s.Needs, err = strconv.Atoi(n); err != nil || s.Needs < 1 || s.Needs > s.Version {
				return fmt.Errorf("it needs a step from 1 to %d, not %q", s.Version, n)
			}
			continue
		}
		if line == "-- concurrently" {
			s.Concurrently = true
			continue
		}
		d, ok := strings.CutPrefix(line, "-- after ")
		if !ok {
			return nil
		}
		if s.After, err = time.ParseDuration(d); err != nil || s.After <= 0 {
			return fmt.Errorf("it is postponed by %q, which must be a duration", d)
		}
	}
	return nil
}

// AtOnce returns a time for Due that makes deferred steps due.
func AtOnce() time.Time { return time.Unix(1<<40, 0) }

// Due returns the steps to apply at a time. It returns ErrNewer, wrapped, if the database needs a
// program that knows more steps. Additional applied steps are ignored if they need only known
// steps.
func Due(steps []Step, applied Applied, at time.Time) ([]Step, error) {
	if last, needs := applied.last(), applied.needs(); last > len(steps) && needs > len(steps) {
		return nil, fmt.Errorf("%w (it is at version %d and needs %d, this program knows %d)", ErrNewer, last, needs,
			len(steps))
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s Step) bool {
		return applied.has(s.Version) || s.After > 0 && at.Before(applied.dueAt(s))
	}), nil
}

// dueAt returns when a deferred step is due, after the previous step was applied.
func (a Applied) dueAt(s Step) (at time.Time) {
	for _, st := range a.Steps {
		if st.Version == s.Version-1 {
			at = st.AppliedAt
		}
	}
	return at.Add(s.After)
}

// Current returns nil if the steps of this version are applied, except for deferred ones. Otherwise
// it returns ErrNewer or ErrPending, wrapped.
func Current(steps []Step, applied Applied) error {
	due, err := Due(steps, applied, AtOnce())
	for _, s := range due {
		if s.After == 0 {
			return fmt.Errorf("%w (version %d, %s, is missing)", ErrPending, s.Version, s.Name)
		}
	}
	return err
}

// Merge lists every step with the time when it was applied, followed by applied steps that this
// version does not know.
func Merge(steps []Step, applied Applied) []Status {
	out := make([]Status, 0, max(len(steps), len(applied.Steps)))
	for _, s := range steps {
		st := Status{Version: s.Version, Name: s.Name}
		if i := slices.IndexFunc(applied.Steps, func(a Status) bool { return a.Version == s.Version }); i >= 0 {
			st.AppliedAt = applied.Steps[i].AppliedAt
		} else if s.After > 0 && applied.has(s.Version-1) {
			st.DueAt = applied.dueAt(s)
		}
		out = append(out, st)
	}
	for _, a := range applied.Steps {
		if a.Version > len(steps) {
			out = append(out, a)
		}
	}
	return out
}
