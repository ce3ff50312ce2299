package storage

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestTimed: OB-07: each verb is reported with its duration and error, and returns its error.
func TestTimed(t *testing.T) {
	now, fault := time.Unix(0, 0), errors.New("disk full")
	var verb string
	var began time.Time
	var took time.Duration
	var failed error
	var h Hooks
	h.Hook(Timed(func() time.Time { return now },
		func(_ context.Context, v string, at time.Time, d time.Duration, err error) {
			verb, began, took, failed = v, at, d, err
		}))
	err := h.Run(t.Context(), "Keys", func(context.Context) error {
		now = now.Add(time.Minute)
		return fault
	})
	if err != fault || verb != "Keys" || took != time.Minute || failed != fault || began.Unix() != 0 {
		t.Errorf("got %v; told of %s at %v, %v, %v", err, verb, began, took, failed)
	}
}

// TestHooks checks that hooks nest in the order in which they were added, that steps of a verb pass
// none, and that a removed hook is not called.
func TestHooks(t *testing.T) {
	var h Hooks
	var passed []string
	noting := func(name string) Hook {
		return func(_ context.Context, verb string, run func() error) error {
			passed = append(passed, name+verb)
			return run()
		}
	}
	removeInner := h.Hook(noting("inner "))
	removeOuter := h.Hook(noting("outer "))
	call := func() []string {
		passed = nil
		_ = h.Run(t.Context(), "Sweep", func(ctx context.Context) error {
			return h.Run(ctx, "Remember", func(context.Context) error { return nil })
		})
		return passed
	}
	if got, want := call(), []string{"outer Sweep", "inner Sweep"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	removeInner()
	if got, want := call(), []string{"outer Sweep"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	removeOuter()
	if got := call(); got != nil {
		t.Errorf("got %q, want none", got)
	}
}

func TestWords(t *testing.T) {
	for in, want := range map[string]string{"RedeemCode": "redeem code", "file clients": "file clients"} {
		if got := Words(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
