package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// task returns a new task of an owner and a user.
func (e *env) task(name string, owner, person storage.Hash) storage.Task {
	return storage.Task{
		ID: randomHash(), Owner: owner, Person: person, Name: name, CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour),
		Sealed: []byte{0, 1, 254, 255},
	}
}

func (e *env) keepTask(t *testing.T, task storage.Task) storage.Task {
	t.Helper()
	check(t, e.s.KeepTask(e.ctx, task, 9, e.now))
	return task
}

func (e *env) findTask(t *testing.T, id storage.Hash, at time.Time) storage.Task {
	t.Helper()
	got, err := e.s.FindTask(e.ctx, id, at)
	check(t, err)
	return got
}

func tasks(t *testing.T, e *env) {
	t.Run("RS-215 a task is found as it was kept, until it expires", func(t *testing.T) {
		kept := e.keepTask(t, e.task("a", randomHash(), randomHash()))
		same(t, e.findTask(t, kept.ID, kept.ExpiresAt.Add(-time.Millisecond)), kept)
		_, err := e.s.FindTask(e.ctx, kept.ID, kept.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
		wantErr(t, e.s.ChangeTask(e.ctx, kept.ID, 0, []byte{2}, kept.ExpiresAt), storage.ErrNotFound)
		_, err = e.s.FindTask(e.ctx, kept.Owner, e.now)
		wantErr(t, err, storage.ErrNotFound)
		wantErr(t, e.s.KeepTask(e.ctx, kept, 9, e.now), storage.ErrExists)
	})
	t.Run("RS-215 a change is of the version that was read", func(t *testing.T) {
		kept := e.keepTask(t, e.task("a", randomHash(), randomHash()))
		check(t, e.s.ChangeTask(e.ctx, kept.ID, 0, []byte{2}, e.now))
		wantErr(t, e.s.ChangeTask(e.ctx, kept.ID, 0, []byte{3}, e.now), storage.ErrChanged)
		kept.Version, kept.Sealed = 1, []byte{2}
		same(t, e.findTask(t, kept.ID, e.now), kept)
		wantErr(t, e.s.ChangeTask(e.ctx, randomHash(), 0, []byte{3}, e.now), storage.ErrNotFound)
	})
	t.Run("RS-215 a list has the tasks of one owner, the latest first", func(t *testing.T) {
		owner, person := randomHash(), randomHash()
		for _, name := range []string{"b", "a", "C"} {
			e.keepTask(t, e.task(name, owner, person))
		}
		later := e.task("0", owner, person)
		later.CreatedAt = e.now.Add(time.Millisecond)
		e.keepTask(t, later)
		e.keepTask(t, e.task("z", randomHash(), person))
		var got string
		var after storage.Task
		for range 3 {
			page, err := e.s.ListTasks(e.ctx, owner, after, 2, e.now)
			check(t, err)
			for _, task := range page {
				got += task.Name
				after = task
			}
		}
		if got != "0baC" {
			t.Errorf("got %q", got)
		}
		page, err := e.s.ListTasks(e.ctx, owner, storage.Task{}, 9, e.now.Add(2*time.Hour))
		check(t, err)
		if len(page) > 0 {
			t.Errorf("expired: got %v", page)
		}
	})
	t.Run("RS-132 a person has so many tasks, for all owners", func(t *testing.T) {
		person := randomHash()
		for range 3 {
			check(t, e.s.KeepTask(e.ctx, e.task("a", randomHash(), person), 3, e.now))
		}
		wantErr(t, e.s.KeepTask(e.ctx, e.task("b", randomHash(), person), 3, e.now), storage.ErrFull)
		check(t, e.s.KeepTask(e.ctx, e.task("b", randomHash(), randomHash()), 3, e.now))
		check(t, e.s.KeepTask(e.ctx, e.task("b", randomHash(), person), 3, e.now.Add(time.Hour)))
	})
}

// raceChangeTask: of two replicas that end a task at once, one succeeds.
func raceChangeTask(t *testing.T, e *env) {
	kept := e.keepTask(t, e.task("a", randomHash(), randomHash()))
	var c tally
	compete(func(i int) {
		c.add(e.s.ChangeTask(e.ctx, kept.ID, 0, []byte{byte(i)}, e.now), storage.ErrChanged)
	})
	c.want(t, 1)
}

// raceKeepTask: the limit of a user holds for tasks from any number of replicas.
func raceKeepTask(t *testing.T, e *env) {
	person := randomHash()
	var c tally
	compete(func(int) {
		c.add(e.s.KeepTask(e.ctx, e.task("a", randomHash(), person), racers/4, e.now), storage.ErrFull)
	})
	c.want(t, racers/4)
	wantErr(t, e.s.KeepTask(e.ctx, e.task("b", randomHash(), person), racers/4, e.now), storage.ErrFull)
	check(t, e.s.KeepTask(e.ctx, e.task("b", randomHash(), person), 1, e.now.Add(time.Hour)))
}
