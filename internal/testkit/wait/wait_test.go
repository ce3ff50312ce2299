package wait

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetry(t *testing.T) {
	errNotYet := errors.New("not yet")
	for _, tt := range []struct {
		name  string
		takes time.Duration
		want  error
	}{
		{"the event is there", 0, nil},
		{"the event comes within the bound", Bound - time.Second, nil},
		{"the event does not come", 2 * Bound, errNotYet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				if got := Retry(Bound, func() error {
					if time.Since(began) < tt.takes {
						return errNotYet
					}
					return nil
				}); got != tt.want {
					t.Errorf("got %v, want %v", got, tt.want)
				}
				if took := time.Since(began); took > Bound+last {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		if !Poll(Bound, func() bool { looks++; return looks == 3 }) || looks != 3 {
			t.Errorf("gave up after %d looks", looks)
		}
		if Poll(Bound, func() bool { return false }) {
			t.Error("reports an event that did not come")
		}
	})
}

func TestAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if Advance(time.Hour); time.Since(began) != time.Hour {
			t.Errorf("the clock moved by %v, want 1h", time.Since(began))
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("does not panic outside a bubble")
		}
	}()
	Advance(0)
}
