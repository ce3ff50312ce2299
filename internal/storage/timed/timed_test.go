package timed

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// slow is a store whose verb takes a minute.
type slow struct {
	storage.Store
	now *time.Time
	err error
}

func (s slow) Keys(context.Context, time.Time) ([]storage.SigningKey, error) {
	*s.now = s.now.Add(time.Minute)
	return []storage.SigningKey{{ID: "k"}}, s.err
}

// TestTimed: OB-07: each verb is reported with its duration and error, and returns the store's
// result.
func TestTimed(t *testing.T) {
	now, fault := time.Unix(0, 0), errors.New("disk full")
	var verb string
	var began time.Time
	var took time.Duration
	var failed error
	s := New(slow{now: &now, err: fault}, func() time.Time { return now },
		func(_ context.Context, v string, at time.Time, d time.Duration, err error) {
			verb, began, took, failed = v, at, d, err
		})
	keys, err := s.Keys(t.Context(), now)
	if len(keys) != 1 || err != fault || verb != "Keys" || took != time.Minute || failed != fault || began.Unix() != 0 {
		t.Errorf("got %v, %v; told of %s at %v, %v, %v", keys, err, verb, began, took, failed)
	}
}

type alone struct{ storage.Store }

func (alone) Attend() ([]string, error) { return []string{"1"}, nil }

// TestAttend: a store for one server at a time still reports other processes.
func TestAttend(t *testing.T) {
	type attending interface{ Attend() ([]string, error) }
	for _, tt := range []struct {
		store storage.Store
		want  int
	}{{alone{}, 1}, {slow{}, 0}} {
		others, err := New(tt.store, time.Now, nil).(attending).Attend()
		if len(others) != tt.want || err != nil {
			t.Errorf("got %v, %v", others, err)
		}
	}
}
