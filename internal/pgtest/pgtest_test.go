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
