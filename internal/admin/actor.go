package admin

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Role is what a person of the operator may do (OB-10).
type Role = storage.Role

// The roles. An account without one administers nothing.
const (
	Administrator = storage.Administrator // everything
	Auditor       = storage.Auditor       // reads everything, changes nothing
	Support       = storage.Support       // helps people: accounts, attempts
)

// NoRole is what people write for an account without a role.
const NoRole = "none"

// ParseRole reads a role as people write it.
func ParseRole(name string) (Role, error) {
	switch r := Role(name); r {
	case Administrator, Auditor, Support:
		return r, nil
	case NoRole:
		return "", nil
	}
	return "", fault(ErrInvalid, "%q is not administrator, auditor, support or none", name)
}

// The roles that operations name beside administrators.
var (
	readers = []Role{Auditor, Support} // may read of people and attempts
	helping = []Role{Support}          // may help people
	reading = []Role{Auditor}          // may read the rest
)

// Actor is a person or program at a face of the API.
type Actor struct {
	UserID, Name string // "" for a program
	ClientID     string // the application by which they act; "": a browser
	Role         Role
	// Proved is when the person last proved who they are; zero: not known, or a program.
	Proved time.Time
	// Program: it acts for itself, with a secret of its own, and cannot be asked for a proof.
	Program bool
}

// RoleOf is the role of an account; "" for none, and of one that is disabled.
func RoleOf(u storage.User) Role {
	if u.Disabled {
		return ""
	}
	return u.Role
}

// Operator carries out whatever it is asked: who has the database and the master key needs no permission.
func (s *Service) Operator() Caller { return operator{s} }

type operator struct{ service *Service }

func (o operator) Call(ctx context.Context, v Verb, in, out any) error {
	return v.run(ctx, o.service, in, out)
}

// As carries out what an actor may do, and records it as theirs.
func (s *Service) As(a Actor) Caller { return acting{s, a} }

// Permits returns [ErrForbidden] for an operation that the role of an actor may not use, and a
// [*StaleError] where the proof of who they are is too old.
func (s *Service) Permits(a Actor, o Spec) error {
	if !o.Permits(a.Role) {
		return ErrForbidden
	}
	if o.Fresh && !a.Program && s.Now().Sub(a.Proved) > s.FreshFor {
		return &StaleError{MaxAge: s.FreshFor}
	}
	return nil
}

type acting struct {
	service *Service
	actor   Actor
}

// Call also returns the errors of [Service.Permits], [ErrUnavailable], [ErrInterrupted] and [ErrUnkept], and a
// [*ProposedError] for an operation that needs two administrators.
func (c acting) Call(ctx context.Context, v Verb, in, out any) error {
	return interrupted(v.Spec(), c.call(ctx, v, in, out))
}

func (c acting) call(ctx context.Context, v Verb, in, out any) error {
	spec := v.Spec()
	if err := c.service.Permits(c.actor, spec); err != nil {
		return err
	}
	ctx = context.WithValue(ctx, actorKey{}, c.actor)
	ctx = audit.Within(ctx, audit.NewRequest(c.noted(spec)...))
	if !spec.Changes() {
		return v.run(storage.Aside(ctx), c.service, in, out)
	}
	run := func(ctx context.Context) error {
		input := reflect.ValueOf(in).Elem()
		if err := c.service.mayTouch(ctx, v, input); err != nil {
			return err
		}
		switch two, err := c.service.waits(ctx, c.actor, v, input); {
		case err != nil:
			return err
		case two:
			return c.service.propose(ctx, c.actor, v, in)
		}
		return v.run(ctx, c.service, in, out)
	}
	thing := c.service.Thing(ctx, spec, in)
	if thing == "" {
		if err := c.service.writable(ctx); err != nil {
			return err
		}
	}
	return c.service.Alone(ctx, thing, func(ctx context.Context) error {
		return c.service.kept(ctx, run)
	})
}

type actorKey struct{}

// actorName is who has an operation carried out, for people to read.
func actorName(ctx context.Context) string {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return cmp.Or(a.Name, a.ClientID, a.UserID, "operator")
}

// mayGiveRoles is an error where the actor is not one who may act on accounts that have a role: who
// helps people would else get that role by a link or a password of theirs.
func mayGiveRoles(ctx context.Context) error {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok && a.Role != Administrator {
		return fault(ErrForbidden, "only an administrator may do this to an account that has a role, or that is "+
			"invited into groups")
	}
	return nil
}

// givenRole reads a role that an actor gives an account, "" for none.
func givenRole(ctx context.Context, name string) (Role, error) {
	if name == "" || name == NoRole {
		return "", nil
	}
	role, err := ParseRole(name)
	if err != nil {
		return "", err
	}
	return role, mayGiveRoles(ctx)
}

// noted is what each event of the operation says of the actor.
func (c acting) noted(s Spec) []slog.Attr {
	return []slog.Attr{
		slog.String("by", string(c.actor.Role)), slog.String("by_user", c.actor.Name),
		slog.String("by_client", c.actor.ClientID), slog.String("operation", s.Name),
	}
}
