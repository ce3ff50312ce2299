package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// notices checks PE-04: a notice about an account is kept until its user has seen it.
func notices(t *testing.T, e *env) {
	for _, id := range []string{"usr_n", "usr_o"} {
		check(t, e.s.CreateUser(e.ctx, storage.User{ID: id, Name: id, CreatedAt: e.now}))
	}
	at := func(n int) storage.Notice {
		return storage.Notice{
			ID: fmt.Sprintf("ntc_%03d", n), UserID: "usr_n", Kind: "key-made", Detail: fmt.Sprint("key ", n),
			At: e.now.Add(time.Duration(n) * time.Second),
		}
	}
	unseen := func(t *testing.T, userID string) []storage.Notice {
		t.Helper()
		got, err := e.s.UnseenNotices(e.ctx, userID)
		check(t, err)
		return got
	}
	t.Run("PE-04 of an unknown user is ErrNotFound", func(t *testing.T) {
		wantErr(t, e.s.PutNotice(e.ctx, storage.Notice{ID: "ntc_x", UserID: "none", At: e.now}), storage.ErrNotFound)
	})
	t.Run("PE-04 what was not seen comes, newest first, and to its person alone", func(t *testing.T) {
		for n := range 3 {
			check(t, e.s.PutNotice(e.ctx, at(n)))
		}
		same(t, unseen(t, "usr_n"), []storage.Notice{at(2), at(1), at(0)})
		same(t, len(unseen(t, "usr_o")), 0)
	})
	t.Run("PE-04 what was seen does not come again, and others cannot hide it", func(t *testing.T) {
		check(t, e.s.SeeNotices(e.ctx, "usr_o", []string{at(2).ID}, e.now))
		check(t, e.s.SeeNotices(e.ctx, "usr_n", nil, e.now))
		check(t, e.s.SeeNotices(e.ctx, "usr_n", []string{at(0).ID, at(1).ID, "none"}, e.now))
		same(t, unseen(t, "usr_n"), []storage.Notice{at(2)})
	})
	t.Run("PE-04 they are bounded, and the newest stay", func(t *testing.T) {
		for n := range storage.MaxNotices {
			check(t, e.s.PutNotice(e.ctx, at(10+n)))
		}
		got := unseen(t, "usr_n")
		same(t, len(got), storage.MaxNotices)
		same(t, got[0], at(10+storage.MaxNotices-1))
		same(t, got[len(got)-1], at(10))
	})
	t.Run("PE-04 a seen one goes after 30 days, one not seen after a year", func(t *testing.T) {
		check(t, e.s.SeeNotices(e.ctx, "usr_n", []string{at(10).ID}, e.now))
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{30*24*time.Hour - 1e6, 0}, {30 * 24 * time.Hour, 1}, {366 * 24 * time.Hour, storage.MaxNotices - 1}} {
			n, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(step.after)}, 100)
			check(t, err)
			same(t, n, step.want)
		}
	})
	t.Run("PE-04 they go with their person", func(t *testing.T) {
		n := at(1)
		n.ID, n.UserID = "ntc_o", "usr_o"
		check(t, e.s.PutNotice(e.ctx, n))
		check(t, e.s.DeleteUser(e.ctx, "usr_o", e.now))
		check(t, e.s.CreateUser(e.ctx, storage.User{ID: "usr_o", Name: "again", CreatedAt: e.now}))
		same(t, len(unseen(t, "usr_o")), 0)
	})
}
