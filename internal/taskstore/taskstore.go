// Package taskstore stores tasks of MCP servers in the database of the authorization server.
package taskstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// New returns the store for the tasks of one MCP server, named by resource. The tasks are encrypted
// with the keys of the ring.
func New(
	store storage.Tasks, resource string, ring *secrets.Ring, now func() time.Time,
) (mcpresource.TaskStore, error) {
	if now == nil {
		now = time.Now
	}
	return mcpresource.SealTasks(&tasks{store, resource, now}, ring.Keys("tasks of MCP servers", 32)...)
}

type tasks struct {
	store    storage.Tasks
	resource string
	now      func() time.Time
}

// digest returns the digest of a name within the MCP server.
func (s *tasks) digest(parts ...string) (out storage.Hash) {
	h := sha256.New()
	for _, p := range append([]string{s.resource}, parts...) {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	h.Sum(out[:0])
	return out
}

func (s *tasks) id(owner, id string) storage.Hash { return s.digest("task", owner, id) }

// CreateTask implements mcpresource.TaskStore.
func (s *tasks) CreateTask(ctx context.Context, t mcpresource.Task, most int) error {
	err := s.store.KeepTask(ctx, storage.Task{
		ID: s.id(t.Owner, t.ID), Owner: s.digest("owner", t.Owner), Person: s.digest("person", t.Person), Name: t.ID,
		CreatedAt: t.Created, ExpiresAt: t.Expires, Sealed: t.State,
	}, most, s.now())
	return answer(err)
}

// Task implements mcpresource.TaskStore.
func (s *tasks) Task(ctx context.Context, owner, id string) (mcpresource.Task, error) {
	t, err := s.store.FindTask(ctx, s.id(owner, id), s.now())
	if err != nil {
		return mcpresource.Task{}, answer(err)
	}
	return of(owner, t), nil
}

// Tasks implements mcpresource.TaskStore.
func (s *tasks) Tasks(
	ctx context.Context, owner string, after mcpresource.Task, limit int,
) (out []mcpresource.Task, err error) {
	from := storage.Task{Name: after.ID, CreatedAt: after.Created}
	list, err := s.store.ListTasks(ctx, s.digest("owner", owner), from, limit, s.now())
	for _, t := range list {
		out = append(out, of(owner, t))
	}
	return out, answer(err)
}

// ChangeTask implements mcpresource.TaskStore.
func (s *tasks) ChangeTask(ctx context.Context, t mcpresource.Task) error {
	return answer(s.store.ChangeTask(ctx, s.id(t.Owner, t.ID), t.Version, t.State, s.now()))
}

func of(owner string, t storage.Task) mcpresource.Task {
	return mcpresource.Task{
		ID: t.Name, Owner: owner, Created: t.CreatedAt, Expires: t.ExpiresAt, Version: t.Version, State: t.Sealed,
	}
}

// answer converts an error of the store to one of a mcpresource.TaskStore.
func answer(err error) error {
	for _, known := range []struct{ is, as error }{
		{storage.ErrNotFound, mcpresource.ErrNoTask}, {storage.ErrChanged, mcpresource.ErrTaskChanged},
		{storage.ErrFull, mcpresource.ErrTasksFull},
	} {
		if errors.Is(err, known.is) {
			return known.as
		}
	}
	return err
}
