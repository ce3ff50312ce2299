package migration

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestBothEnginesHaveTheSameSteps(t *testing.T) {
	lite, err := Steps(SQLite)
	if err != nil {
		t.Fatal(err)
	}
	pg, err := Steps(Postgres)
	if err != nil {
		t.Fatal(err)
	}
	if len(lite) == 0 || len(lite) != len(pg) {
		t.Fatalf("got %d steps for SQLite and %d for PostgreSQL", len(lite), len(pg))
	}
	for i := range lite {
		if lite[i].Name != pg[i].Name || lite[i].SQL == "" || pg[i].SQL == "" {
			t.Errorf("step %d: got %q and %q", i+1, lite[i].Name, pg[i].Name)
		}
	}
	if _, version := SQLiteSchema(); version != len(lite) {
		t.Errorf("schema/sqlite.sql is as of step %d of %d: run go test ./internal/storage/sqlite "+
			"-run TestSchemaOfNewDatabases -update", version, len(lite))
	}
}

func TestDueCurrentAndMerge(t *testing.T) {
	steps := []Step{{Version: 1, Name: "a"}, {Version: 2, Name: "b"}}
	at := time.Unix(1, 0)
	one, two := Status{Version: 1, Name: "a", AppliedAt: at}, Status{Version: 2, Name: "b", AppliedAt: at}
	for _, c := range []struct {
		name    string
		applied []Status
		needs   int
		due     int
		current error
		listed  int
	}{
		{"empty database", nil, 0, 2, ErrPending, 2},
		{"half way", []Status{one}, 0, 1, ErrPending, 2},
		{"current", []Status{one, two}, 0, 0, nil, 2},
		{"newer", []Status{one, two, {Version: 3, Name: "c", AppliedAt: at}}, 0, 0, ErrNewer, 3},
		{"newer, and it needs the newer program", []Status{one, two, {Version: 3, Name: "c", AppliedAt: at}}, 3, 0,
			ErrNewer, 3},
		{"newer by a step that only adds: an upgrade is under way",
			[]Status{one, two, {Version: 3, Name: "c", AppliedAt: at}}, 2, 0, nil, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			due, err := Due(steps, Applied{c.applied, c.needs}, AtOnce())
			if len(due) != c.due || errors.Is(err, ErrNewer) != (c.current == ErrNewer) {
				t.Errorf("Due: got %d, %v; want %d", len(due), err, c.due)
			}
			if err := Current(steps, Applied{c.applied, c.needs}); !errors.Is(err, c.current) {
				t.Errorf("Current: got %v, want %v", err, c.current)
			}
			if got := Merge(steps, Applied{c.applied, c.needs}); len(got) != c.listed {
				t.Errorf("Merge: got %d, want %d", len(got), c.listed)
			}
		})
	}
}

// TestAStepThatIsPutOff checks that a deferred step waits for its time, blocks no later step, and
// leaves the database current. When it is applied late, it still excludes programs that do not know
// it.
func TestAStepThatIsPutOff(t *testing.T) {
	steps := []Step{
		{Version: 1, Name: "a", Needs: 1}, {Version: 2, Name: "b", Needs: 2, After: time.Hour},
		{Version: 3, Name: "c", Needs: 1},
	}
	at := time.Unix(1e9, 0)
	one := Applied{Steps: []Status{{Version: 1, Name: "a", AppliedAt: at}}, Needs: 1}
	three := Applied{
		Steps: append(one.Steps, Status{Version: 3, Name: "c", AppliedAt: at.Add(30 * time.Minute)}), Needs: 1,
	}
	for _, c := range []struct {
		name    string
		applied Applied
		at      time.Time
		due     []string
	}{
		{"before its time what is behind it goes first", one, at.Add(time.Hour - 1), []string{"c"}},
		{"before its time", three, at.Add(time.Hour - 1), nil},
		{"at its time", three, at.Add(time.Hour), []string{"b"}},
		{"nothing is put off", three, AtOnce(), []string{"b"}},
		{"a new database", Applied{}, AtOnce(), []string{"a", "b", "c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			due, err := Due(steps, c.applied, c.at)
			var names []string
			for _, s := range due {
				names = append(names, s.Name)
			}
			if err != nil || !slices.Equal(names, c.due) {
				t.Errorf("got %v, %v; want %v", names, err, c.due)
			}
		})
	}
	if err := Current(steps, one); !errors.Is(err, ErrPending) {
		t.Errorf("without step 3: got %v, want ErrPending", err)
	}
	if err := Current(steps, three); err != nil {
		t.Errorf("with a step that waits: got %v", err)
	}
	if got := Merge(steps, three)[1]; !got.AppliedAt.IsZero() || !got.DueAt.Equal(at.Add(time.Hour)) {
		t.Errorf("its status: got %+v", got)
	}
	if got := string(three.Note(steps[1])); got != "3 needs 2" {
		t.Errorf("its note: got %q", got)
	}
	all := Applied{Steps: append(three.Steps, Status{Version: 2, Name: "b"}), Needs: 2}
	if err := Current(steps[:1], three); err != nil {
		t.Errorf("an older program before it: got %v", err)
	}
	if err := Current(steps[:1], all); !errors.Is(err, ErrNewer) {
		t.Errorf("an older program after it: got %v, want ErrNewer", err)
	}
}

func TestAMisnamedFileIsAnError(t *testing.T) {
	for _, path := range []string{"sqlite/init.sql", "sqlite/x_init.sql"} {
		if _, err := step(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}

func TestAConcurrentStepIsSplitIntoItsStatements(t *testing.T) {
	s := Step{Version: 2,
		SQL: "-- needs 1\n-- concurrently\n-- why; and more\n\nCREATE INDEX a\n    ON b (c);\nDROP INDEX d;\n"}
	if err := s.readHead(); err != nil || !s.Concurrently || s.Needs != 1 {
		t.Errorf("the head: got %+v, %v", s, err)
	}
	got := s.Statements()
	if len(got) != 2 || got[0] != "CREATE INDEX a\n    ON b (c);\n" || got[1] != "DROP INDEX d;\n" {
		t.Errorf("got %q", got)
	}
}
