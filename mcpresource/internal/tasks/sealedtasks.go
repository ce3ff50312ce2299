package tasks

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
)

const taskPurpose = "mcp-authd tasks 1"

// errSealedTask means that no key decrypts a state.
var errSealedTask = errors.New("mcpresource: the state of a task cannot be decrypted: was it kept with another key?")

// SealTasks returns a store that encrypts the states of tasks, which contain arguments and results,
// before they are stored in store. Keys must have at least 32 bytes. The first encrypts and all
// decrypt, so that keys can be replaced. All replicas need the same keys. Each state is bound to
// its task.
func SealTasks(store TaskStore, keys ...[]byte) (TaskStore, error) {
	if len(keys) == 0 {
		return nil, errors.New("mcpresource: tasks are kept only with a key of 32 bytes")
	}
	s := &sealedTasks{store: store}
	for _, k := range keys {
		if len(k) < minSealKey {
			return nil, errors.New("mcpresource: a key for tasks has fewer than 32 bytes")
		}
		aead, err := newAEAD(k, taskPurpose)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

type sealedTasks struct {
	store TaskStore
	keys  []cipher.AEAD // the first encrypts
}

// of returns the data that a state is bound to.
func (s *sealedTasks) of(owner, id string) []byte {
	return fmt.Appendf(nil, "%d:%s:%s", len(owner), owner, id)
}

func (s *sealedTasks) seal(t Task) Task {
	t.State = s.keys[0].Seal(nil, nil, t.State, s.of(t.Owner, t.ID))
	return t
}

func (s *sealedTasks) open(t Task) (Task, error) {
	for _, key := range s.keys {
		if plain, err := key.Open(nil, nil, t.State, s.of(t.Owner, t.ID)); err == nil {
			t.State = plain
			return t, nil
		}
	}
	return Task{}, errSealedTask
}

// CreateTask implements TaskStore.
func (s *sealedTasks) CreateTask(ctx context.Context, t Task, most int) error {
	return s.store.CreateTask(ctx, s.seal(t), most)
}

// Task implements TaskStore.
func (s *sealedTasks) Task(ctx context.Context, owner, id string) (Task, error) {
	t, err := s.store.Task(ctx, owner, id)
	if err != nil {
		return Task{}, err
	}
	return s.open(t)
}

// Tasks implements TaskStore.
func (s *sealedTasks) Tasks(ctx context.Context, owner string, after Task, limit int) ([]Task, error) {
	list, err := s.store.Tasks(ctx, owner, after, limit)
	for i := range list {
		if list[i], err = s.open(list[i]); err != nil {
			return nil, err
		}
	}
	return list, err
}

// ChangeTask implements TaskStore.
func (s *sealedTasks) ChangeTask(ctx context.Context, t Task) error {
	return s.store.ChangeTask(ctx, s.seal(t))
}
