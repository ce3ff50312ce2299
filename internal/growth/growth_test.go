package growth_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/growth"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// sized is a store of which a test sets the size.
type sized struct {
	growth.Store
	size storage.Size
}

func (s *sized) Size(context.Context) (storage.Size, error) { return s.size, nil }

// TestGrowth: OP-02. The growth is the average since the oldest sample of the last 30 days, and says when the disk is
// full.
func TestGrowth(t *testing.T) {
	store := &sized{Store: installation.New(t).Store}
	now := time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after      time.Duration
		used, free int64
		perDay     int64
		days       int
		full       int64 // -1: unknown
	}{
		{0, 1000, 5000, 0, 0, -1},
		{time.Minute, 1100, 5000, 0, 0, -1},        // the same day
		{24 * time.Hour, 1300, 5000, 300, 1, 16},   // since the first sample of yesterday
		{24 * time.Hour, 2000, -1, 500, 2, -1},     // PostgreSQL
		{24 * time.Hour, 400, 5000, -200, 3, -1},   // it shrinks
		{27 * 24 * time.Hour, 4000, 0, 100, 30, 0}, // full
		// The first two samples are too old now.
		{2 * 24 * time.Hour, 4800, 5000, (4800 - 2000) / 30, 30, 53},
	} {
		now = now.Add(c.after)
		store.size = storage.Size{Used: c.used, Free: c.free}
		got, err := growth.Note(t.Context(), store, now)
		if err != nil {
			t.Fatal(err)
		}
		full, known := got.Full()
		if !known {
			full = -1
		}
		if got.PerDay != c.perDay || got.Days != c.days || full != c.full {
			t.Errorf("OP-02: at %s: got %d a day over %d days, full in %d; want %+v", now, got.PerDay, got.Days, full, c)
		}
		if looked, err := growth.Look(t.Context(), store, now); err != nil || looked != got {
			t.Errorf("OP-02: got %+v, %v; want %+v", looked, err, got)
		}
	}
}
