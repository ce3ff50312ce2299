package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// TestProofsAloneDoNotWaitForTheDisk: the setting ends with the transaction of the proof.
func TestProofsAloneDoNotWaitForTheDisk(t *testing.T) {
	s := open(t, pgtest.Start(t).Database(t)+"&synchronous_commit=on", Options{MaxConns: 1})
	defer s.Close()
	shows := func(q querier) (level string) {
		if err := one(t.Context(), q, []any{&level}, "SHOW synchronous_commit"); err != nil {
			t.Error(err)
		}
		return level
	}
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), spendProof, "dpop", "x", 1)
		if got := shows(tx); got != "off" {
			t.Errorf("with the proof it is %q, want off", got)
		}
		return err
	})
	err = errors.Join(err, s.SpendProof(t.Context(), "dpop", "y", time.Now().Add(time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	if got := shows(s.pool); got != "on" {
		t.Errorf("after it, it is %q, want on", got)
	}
}
