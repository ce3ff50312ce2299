// Package migrations holds the versioned schema of both databases and decides
// which steps are due. How a step is run, and under which lock, is the business
// of the backend.
//
// A step is a file NNNN_name.sql; its number is its version, without gaps. A step
// that has been released is never edited. Steps expand first and contract a
// release later, so that the previous version keeps working during an upgrade: a step
// whose first line is "-- needs N" leaves the schema fit for programs that know the steps
// up to N only; without that line, it needs the program that brings it.
//
// schema/sqlite.sql is what all steps come to: the schema as one reads it, and what a new
// database of SQLite is made of.
package migrations

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

//go:embed schema/sqlite.sql
var sqliteSchema string

// SQLiteSchema is a script that makes of an empty database of SQLite one to which the steps up to
// that version are applied, as a test of storage/sqlite holds. The steps one by one, which change
// the tables of those before them, take five times as long.
func SQLiteSchema() (script string, version int) {
	if _, err := fmt.Sscanf(sqliteSchema, "-- steps 1 to %d", &version); err != nil {
		return "", 0
	}
	return sqliteSchema, version
}

// ErrNewer means that the database was migrated by a newer version of the program.
var ErrNewer = errors.New(
	"the database was written by a newer version of mcp-authd: install that version, or restore the backup made before the upgrade",
)

// ErrPending means that the database lacks steps of this version.
var ErrPending = errors.New("the database is not migrated: run `mcp-authd migrate up`")

// Engine names a database engine.
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
	// After is how long after the step before it this one is applied; zero: at once.
	After time.Duration
	// Concurrently: each statement is a transaction of its own, which blocks no writer of the
	// tables that it is about. A step that was interrupted is run again from its beginning.
	Concurrently bool
}

// Statements returns the statements of a step that is run concurrently: each ends a line.
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

// Applied is what a database says of itself.
type Applied struct {
	Steps []Status
	Needs int // of the last step; 0: the last step itself
}

// Note is what applying s leaves in the database about what its last step needs; ReadNote
// reads it back. What one step needs, later ones need too.
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

// Has reports whether the step of that name is applied.
func (a Applied) Has(name string) bool {
	return slices.ContainsFunc(a.Steps, func(st Status) bool { return st.Name == name })
}

// ReadNote returns the Needs of the last of the applied steps, 0 when note does not tell.
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

// Status is a step and when it was applied.
type Status struct {
	Version   int       `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"` // zero: pending
	DueAt     time.Time `json:"due_at,omitzero"`     // when a pending step that is put off is due
}

// Steps returns the migrations of an engine in order of version. It fails only
// when the embedded files are misnamed.
func Steps(e Engine) ([]Step, error) {
	names, err := fs.Glob(files, string(e)+"/*.sql")
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
			return nil, fmt.Errorf("migrations: %s has version %d where %d was expected", s.Name, s.Version, i+1)
		}
	}
	return steps, nil
}

func step(path string) (Step, error) {
	base := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".sql")
	number, name, ok := strings.Cut(base, "_")
	version, err := strconv.Atoi(number)
	if !ok || err != nil {
		return Step{}, fmt.Errorf("migrations: %s is not named NNNN_name.sql", path)
	}
	sql, err := files.ReadFile(path)
	if err != nil {
		return Step{}, err
	}
	s := Step{Version: version, Name: name, SQL: string(sql), Needs: version}
	if err := s.readHead(); err != nil {
		return Step{}, fmt.Errorf("migrations: %s: %w", path, err)
	}
	return s, nil
}

// readHead reads the lines at the head of a step that say how it is applied.
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
			return fmt.Errorf("it is put off by %q, which is no time", d)
		}
	}
	return nil
}

// AtOnce is the time for Due at which nothing is put off.
func AtOnce() time.Time { return time.Unix(1<<40, 0) }

// Due returns the steps that are to be applied at that time. ErrNewer, wrapped, when the
// database needs a program that knows more steps than these; further steps that it has and
// that need no more than these are none of our business.
func Due(steps []Step, applied Applied, at time.Time) ([]Step, error) {
	if last, needs := applied.last(), applied.needs(); last > len(steps) && needs > len(steps) {
		return nil, fmt.Errorf("%w (it is at version %d and needs %d, this program knows %d)", ErrNewer, last, needs,
			len(steps))
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s Step) bool {
		return applied.has(s.Version) || s.After > 0 && at.Before(applied.dueAt(s))
	}), nil
}

// dueAt is when a step that is put off is due, once the one before it is applied.
func (a Applied) dueAt(s Step) (at time.Time) {
	for _, st := range a.Steps {
		if st.Version == s.Version-1 {
			at = st.AppliedAt
		}
	}
	return at.Add(s.After)
}

// Current reports nil when the steps of this version are applied, but for those that are
// put off, and otherwise ErrNewer or ErrPending, wrapped.
func Current(steps []Step, applied Applied) error {
	due, err := Due(steps, applied, AtOnce())
	for _, s := range due {
		if s.After == 0 {
			return fmt.Errorf("%w (version %d, %s, is missing)", ErrPending, s.Version, s.Name)
		}
	}
	return err
}

// Merge lists every step with the time at which it was applied, and after them
// what the database has and this version does not know.
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
