package admin

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Role is a user's set of administrative permissions (OB-10).
type Role = storage.Role

// The roles. An account without a role administers nothing.
const (
	Administrator = storage.Administrator // everything
	Auditor       = storage.Auditor       // reads everything, changes nothing
	Support       = storage.Support       // helps users: accounts and attempts
)

// NoRole is the written form of "no role".
const NoRole = "none"

// ParseRole parses the written form of a role.
func ParseRole(name string) (Role, error) {
	switch r := Role(name); r {
	case Administrator, Auditor, Support:
		return r, nil
	case NoRole:
		return "", nil
	}
	return "", fault(ErrInvalid, "%q is not administrator, auditor, support or none", name)
}

// Roles, other than administrator, that operations permit.
var (
	readers = []Role{Auditor, Support} // may read accounts and attempts
	helping = []Role{Support}          // may help users
	reading = []Role{Auditor}          // may read everything else
)

// Actor is a user or program that calls the API.
type Actor struct {
	UserID, Name string // "" for a program
	ClientID     string // the client that the actor uses; "" for a browser
	Role         Role
	// Proved is when the user last authenticated. It is zero for programs and if unknown.
	Proved time.Time
	// Program is set for a program that acts for itself with its own secret. It cannot be asked to
	// authenticate again.
	Program bool
}

// RoleOf returns the role of an account, or "" if it has none or is disabled.
func RoleOf(u storage.User) Role {
	if u.Disabled {
		return ""
	}
	return u.Role
}

// Operator returns a Caller without permission checks, for commands that have the database and the
// master key.
func (s *Service) Operator() Caller { return operator{s} }

type operator struct{ service *Service }

func (o operator) Call(ctx context.Context, v Verb, in, out any) error {
	return v.run(ctx, o.service, in, out)
}

// As returns a Caller that is limited to the permissions of a and records operations under its
// name.
func (s *Service) As(a Actor) Caller { return acting{s, a} }

// Permits returns [ErrForbidden] if the actor's role does not permit an operation, and a
// [*StaleError] if the actor's last authentication is too old.
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

// Call also returns the errors of [Service.Permits], [ErrUnavailable], [ErrInterrupted] and
// [ErrUnkept]. It returns a [*ProposedError] for an operation that needs two administrators.
func (c acting) Call(ctx context.Context, v Verb, in, out any) error {
	return interrupted(v.Spec(), c.call(ctx, v, in, out))
}

func (c acting) call(ctx context.Context, v Verb, in, out any) error {
	spec := v.Spec()
	if err := c.service.Permits(c.actor, spec); err != nil {
		return err
	}
	ctx = context.WithValue(ctx, actorKey{}, c.actor)
	ctx = request.Without(c.noted(spec)...).Within(ctx)
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

// actorName returns a readable name for the caller of an operation.
func actorName(ctx context.Context) string {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return cmp.Or(a.Name, a.ClientID, a.UserID, "operator")
}

// mayGiveRoles returns an error unless the actor may act on accounts that have a role. Otherwise a
// support user could obtain such a role through a link or a password that they issue.
func mayGiveRoles(ctx context.Context) error {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok && a.Role != Administrator {
		return fault(ErrForbidden, "only an administrator may do this to an account that has a role, or that is "+
			"invited into groups")
	}
	return nil
}

// givenRole parses the role that an actor assigns to an account, or "" for none.
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

// noted returns the attributes that describe the actor in each audit event of an operation.
func (c acting) noted(s Spec) []slog.Attr {
	return []slog.Attr{
		slog.String("by", string(c.actor.Role)), slog.String("by_user", c.actor.Name),
		slog.String("by_client", c.actor.ClientID), slog.String("operation", s.Name),
	}
}
