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
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// stripes is the number of leases. Objects that share a lease wait for each other.
	stripes = 64
	// aloneFor is how long a change may take. After leasedFor the lease expires, even if its server
	// is gone.
	aloneFor  = 45 * time.Second
	leasedFor = aloneFor + 15*time.Second
	// busyFor is how long a change waits for the previous one.
	busyFor = 5 * time.Second
	// askAgain is the mean interval between attempts to get a lease, with 50% jitter.
	askAgain = 20 * time.Millisecond
)

type leasesKey struct{}

// Alone runs do under a lock on thing that all servers of the installation share. Changes through
// [Service.As] lock the object in their path themselves. A caller that reads an object to decide on
// a change must do both in one call of Alone. It returns [ErrUnavailable] if another change holds
// the lock too long.
func (s *Service) Alone(ctx context.Context, thing string, do func(context.Context) error) error {
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(thing))) // invitation names are case-insensitive
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
		// The lease is released with an expiry in the past, for servers whose clock is behind. If
		// that fails, the lease expires by itself.
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

// lease waits until holder has the lease of task.
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

// writable returns [ErrUnavailable] if the database accepts no write within busyFor. It runs before
// a change that needs no lease.
func (s *Service) writable(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	now := s.Now()
	// The lease expires at once, so no other change has to wait.
	_, err := s.Store.Lease(waiting, "change", "", now, now)
	return busy(err)
}

// busy turns a store's busy error into [ErrUnavailable]. Use it only before the first change.
func busy(err error) error {
	if errors.Is(err, storage.ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
		return fault(ErrUnavailable, "nothing was done, because the database is busy; try again later")
	}
	return err
}

// interrupted turns a store's busy error into [ErrInterrupted] for a change and into
// [ErrUnavailable] for a read.
func interrupted(o Spec, err error) error {
	switch {
	case !errors.Is(err, storage.ErrBusy), errors.Is(err, ErrUnavailable), errors.Is(err, ErrUnkept):
		return err
	case o.Changes():
		return ErrInterrupted
	}
	return busy(err)
}

// Thing returns the object that a change is about: its path up to the first field, with the field's
// value. For an account, the value is its ID. It returns "" if the path names no object. in is an
// input or a pointer to one.
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

// named returns the one canonical name of an object. Accounts can be given by name or ID.
func (s *Service) named(ctx context.Context, path, name string) string {
	if path != "/users/" {
		return name
	}
	u, err := s.Users.Find(ctx, name)
	if err != nil {
		return name // no such account, or the change will return the same error
	}
	return u.ID
}
