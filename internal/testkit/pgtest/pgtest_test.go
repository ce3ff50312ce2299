package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestEachDatabaseIsEmptyAndItsOwn(t *testing.T) {
	s := Start(t)
	for range 2 {
		c, err := pgx.Connect(context.Background(), s.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Exec(context.Background(), "CREATE TABLE mine (id INTEGER)"); err != nil {
			t.Error(err)
		}
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestCopiesOfATemplateAreTheirOwn(t *testing.T) {
	run := func(url, sql string) int64 {
		t.Helper()
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		tag, err := c.Exec(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		return tag.RowsAffected()
	}
	database := Start(t).Template(t, func(url string) {
		run(url, "CREATE TABLE filled (id INTEGER)")
		run(url, "INSERT INTO filled VALUES (1)")
	})
	for range 2 {
		if got := run(database(t), "DELETE FROM filled"); got != 1 {
			t.Errorf("got %d rows, want 1", got)
		}
	}
}

func TestWhatWasCommittedSurvivesAStop(t *testing.T) {
	ctx, s := context.Background(), StartOwn(t)
	url := s.Database(t)
	run := func(sql string) int {
		t.Helper()
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		tag, err := c.Exec(ctx, sql)
		if err != nil {
			t.Fatal(err)
		}
		return int(tag.RowsAffected())
	}
	run("CREATE TABLE kept (id INTEGER)")
	for _, mode := range []Mode{Fast, Immediate} {
		run("INSERT INTO kept VALUES (1)")
		if err := s.Stop(mode); err != nil {
			t.Fatal(err)
		}
		if _, err := pgx.Connect(ctx, url); err == nil {
			t.Errorf("%s: the server still answers", mode)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if got := run("SELECT id FROM kept"); got != 2 {
		t.Errorf("got %d rows, want 2", got)
	}
}
