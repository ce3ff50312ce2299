package admin

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	// stripes is how many leases there are for all things: things of one lease wait for each other.
	stripes = 64
	// aloneFor is how long a change of a thing may take, and leasedFor when it is over even if the server
	// that made it is gone.
	aloneFor  = 45 * time.Second
	leasedFor = aloneFor + 15*time.Second
	// busyFor is how long a change waits for the one before.
	busyFor = 5 * time.Second
	// askAgain is between two questions for a lease, give or take a half.
	askAgain = 20 * time.Millisecond
)

type leasesKey struct{}

// Alone runs do while nothing else runs for the same thing by Alone, on any server of the installation.
// A change by [Service.As] of what its path names does so by itself; a caller that decides by what a thing
// is, and then changes it, does both in one call. [ErrUnavailable] when another change takes too long.
func (s *Service) Alone(ctx context.Context, thing string, do func(context.Context) error) error {
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(thing))) // names of invitations are compared without regard to case
	task := fmt.Sprint("change ", h.Sum32()%stripes)
	held, _ := ctx.Value(leasesKey{}).(map[string]bool)
	if thing == "" || held[task] {
		return do(ctx)
	}
	holder := secrets.ID("chg_")
	if err := s.lease(ctx, task, holder); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), busyFor)
		defer cancel()
		now := s.Now()
		// Given up, also for a server whose clock is behind; and if that fails, it is over by itself.
		_, _ = s.Store.Lease(ctx, task, holder, now, now.Add(-leasedFor))
	}()
	with := map[string]bool{task: true}
	for other := range held {
		with[other] = true
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, leasesKey{}, with), aloneFor)
	defer cancel()
	return do(ctx)
}

// lease waits until the holder has a task.
func (s *Service) lease(ctx context.Context, task, holder string) error {
	waiting, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	for {
		now := s.Now()
		has, err := s.Store.Lease(waiting, task, holder, now, now.Add(leasedFor))
		if has && err == nil {
			return nil
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return busy(err)
		}
		select {
		case <-waiting.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault(ErrUnavailable, "another change of it is under way; try again")
		case <-time.After(askAgain/2 + rand.N(askAgain)):
		}
	}
}

// writable returns [ErrUnavailable] while the database takes no change within busyFor, before a change that
// needs no lease begins.
func (s *Service) writable(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	now := s.Now()
	// A lease that ends as it begins: nobody has to wait for it.
	_, err := s.Store.Lease(waiting, "change", "", now, now)
	return busy(err)
}

// busy makes [ErrUnavailable] of an error of a store that was busy before anything was changed.
func busy(err error) error {
	if errors.Is(err, storage.ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
		return fault(ErrUnavailable, "nothing was done, because the database is busy; try again later")
	}
	return err
}

// interrupted makes [ErrInterrupted] of an error of a store that was busy while a change was carried out, and
// [ErrUnavailable] of one while something was read.
func interrupted(o Spec, err error) error {
	switch {
	case !errors.Is(err, storage.ErrBusy), errors.Is(err, ErrUnavailable), errors.Is(err, ErrUnkept):
		return err
	case o.Changes():
		return ErrInterrupted
	}
	return busy(err)
}

// Thing is what a change is about: its path as far as the first field, with the value of that, or the id of
// the account that it names. "" for a change of nothing that a path names. In is an input, or a pointer to
// one.
func (s *Service) Thing(ctx context.Context, o Spec, in any) string {
	before, rest, found := strings.Cut(o.Path, "{")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, "}")
	v := reflect.Indirect(reflect.ValueOf(in))
	for _, f := range reflect.VisibleFields(v.Type()) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == strings.TrimSuffix(name, "...") {
			return before + s.named(ctx, before, fmt.Sprint(v.FieldByIndex(f.Index).Interface()))
		}
	}
	return ""
}

// named is the one name for a thing that has several: accounts are named by name or id.
func (s *Service) named(ctx context.Context, path, name string) string {
	if path != "/users/" {
		return name
	}
	u, err := s.Users.Find(ctx, name)
	if err != nil {
		return name // of no account; or the change will meet the same fault
	}
	return u.ID
}
