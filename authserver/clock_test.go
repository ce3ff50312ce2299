package authserver

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// elsewhere is a store whose clock is ahead of the server's.
type elsewhere struct {
	Store
	ahead time.Duration
}

func (s *elsewhere) Correct(t time.Time) time.Time { return t.Add(s.ahead) }
func (s *elsewhere) Skew() time.Duration           { return s.ahead }

// TestM2ReplicasJudgeByTheClockOfTheStore checks that a replica with a wrong clock uses the
// store's, and logs that once (operations M2).
func TestM2ReplicasJudgeByTheClockOfTheStore(t *testing.T) {
	store := &elsewhere{ahead: 65 * time.Second}
	r := newRig(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	const warning = "the clock of this machine and that of the database differ"
	r.probe.now = r.now
	for range 3 {
		r.advance(probeEvery)
		if got := r.person().get("/readyz").status; got != http.StatusOK {
			t.Errorf("got %d", got)
		}
	}
	if got := strings.Count(r.log.String(), warning); got != 1 {
		t.Errorf("warned %d times:\n%s", got, r.log.String())
	}
	if got := r.Server.cfg.Now().Sub(r.now()); got != store.ahead {
		t.Errorf("its clock is %s ahead, want %s", got, store.ahead)
	}
	store.ahead = -6 * time.Minute
	r.advance(probeEvery)
	if got := r.person().get("/readyz").status; got != http.StatusServiceUnavailable ||
		!strings.Contains(r.log.String(), "differ by 6m0s (the database's is behind)") {
		t.Errorf("got %d\n%s", got, r.log.String())
	}
	if _, err := Assemble(t.Context(), r.cfg.Config); err == nil || !strings.Contains(err.Error(), "differ by 6m0s") {
		t.Errorf("a server starts with it: %v", err)
	}
}
