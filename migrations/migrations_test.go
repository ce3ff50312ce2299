package migrations

import (
	"errors"
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
		{"newer, and it needs the newer program", []Status{one, two, {Version: 3, Name: "c", AppliedAt: at}}, 3, 0, ErrNewer, 3},
		{"newer by a step that only adds: an upgrade is under way", []Status{one, two, {Version: 3, Name: "c", AppliedAt: at}}, 2, 0, nil, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			due, err := Due(steps, Applied{c.applied, c.needs})
			if len(due) != c.due || errors.Is(err, ErrNewer) != (c.current == ErrNewer) {
				t.Errorf("Due: got %d, %v; want %d", len(due), err, c.due)
			}
			if err := Current(steps, Applied{c.applied, c.needs}); !errors.Is(err, c.current) {
				t.Errorf("Current: got %v, want %v", err, c.current)
			}
			if got := Merge(steps, c.applied); len(got) != c.listed {
				t.Errorf("Merge: got %d, want %d", len(got), c.listed)
			}
		})
	}
}

func TestAMisnamedFileIsAnError(t *testing.T) {
	for _, path := range []string{"sqlite/init.sql", "sqlite/x_init.sql"} {
		if _, err := step(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
