package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// TestStepsAreBounded: OB-01: beyond MaxSteps, a sweep removes the oldest steps, with their keys.
func TestStepsAreBounded(t *testing.T) {
	s := open(t, pgtest.Start(t).Database(t), Options{})
	defer s.Close()
	now := time.Now()
	var steps []storage.AttemptStep
	for i := range 12 {
		steps = append(steps, storage.AttemptStep{
			At: now, Keys: []string{"all"}, Body: []byte(fmt.Sprint(i)), KeptUntil: now.AddDate(0, 0, 7),
		})
	}
	if err := s.PutSteps(t.Context(), steps[:10]); err != nil {
		t.Fatal(err)
	}
	// As if so many steps had come between.
	_, err := s.pool.Exec(t.Context(),
		"SELECT setval(pg_get_serial_sequence('attempt_steps', 'seq'), (SELECT max(seq) FROM attempt_steps) + $1::bigint)",
		storage.MaxSteps-6)
	if err == nil {
		err = s.PutSteps(t.Context(), steps[10:])
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), storage.Retention{Now: now}, 1000); err != nil {
		t.Fatal(err)
	}
	found, err := s.Steps(t.Context(), storage.StepQuery{Keys: []string{"all"}, Until: now.Add(time.Hour), Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, step := range found {
		left = append(left, string(step.Body))
	}
	if want := []string{"11", "10", "9", "8", "7", "6"}; !slices.Equal(left, want) {
		t.Errorf("OB-01: left are %v, want %v", left, want)
	}
	var keys int
	err = s.pool.QueryRow(t.Context(), "SELECT count(*) FROM attempt_keys").Scan(&keys)
	if err != nil || keys != len(left) {
		t.Errorf("OB-01: %d keys are left, %v", keys, err)
	}
}
