package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// change changes a named application, and returns it as it was before the change, with its grants.
// Administrators cannot cut off the application that they are using.
func (s *Service) change(
	ctx context.Context, name, what string, do func(storage.FiledApplication) error,
) (Application, error) {
	a, err := s.findApplication(ctx, name)
	if err != nil {
		return Application{}, err
	}
	if err := s.notOwn(ctx, a); err != nil {
		return Application{}, err
	}
	v, err := s.viewApplication(ctx, a)
	if err != nil {
		return v, err
	}
	err = do(a)
	if errors.Is(err, storage.ErrBusy) && ctx.Err() == nil && (what == "merged" || what == "split") {
		err = fault(ErrConflict, "grants of it are still being revoked; try again in a minute")
	}
	if err != nil {
		return v, err
	}
	if registry, err := s.Registry(); err == nil {
		registry.ForgetHolds()
	}
	s.Audit.Record(ctx, audit.ApplicationChanged, slog.String("what", what), slog.String("application", a.Key),
		slog.String("client_name", a.Name), slog.Int("grants", v.Grants), slog.Int("people", v.People),
		slog.Int("registrations", v.Registrations))
	return v, nil
}

// notOwn returns an error if a is the application that the actor is using.
func (s *Service) notOwn(ctx context.Context, a storage.FiledApplication) error {
	actor, _ := ctx.Value(actorKey{}).(Actor)
	if actor.ClientID == "" {
		return nil
	}
	own, err := s.findApplication(ctx, actor.ClientID)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case own.Key == a.Key:
		return fault(ErrConflict, "%q is the application by which you do this: use the console or another application, or "+
			"the command where the server runs", cmp.Or(a.Name, a.Key))
	}
	return nil
}

func (s *Service) revokeApplication(ctx context.Context, in ApplicationID) (Application, error) {
	return s.change(ctx, in.ID, "revoked", func(a storage.FiledApplication) error {
		_, err := s.Store.CutGrants(ctx, storage.Selection{Application: a.Key}, storage.ByOperator, s.Now())
		return err
	})
}

func (s *Service) blockApplication(ctx context.Context, in ApplicationID) (Application, error) {
	return s.hold(ctx, in, applicationBlocked)
}

func (s *Service) pauseApplication(ctx context.Context, in ApplicationID) (Application, error) {
	return s.hold(ctx, in, applicationPaused)
}

func (s *Service) hold(ctx context.Context, in ApplicationID, state string) (Application, error) {
	v, err := s.change(ctx, in.ID, state, func(a storage.FiledApplication) error {
		if h := a.Hold; h != nil && (h.Blocked || state == applicationPaused) {
			return fault(ErrConflict, "%q is held already, by %s: see mcp-authd application show %s",
				cmp.Or(a.Name, a.Key), h.By, a.Key)
		}
		err := s.Store.HoldApplication(ctx, storage.Hold{
			Application: a.Key, Name: a.Name, Blocked: state == applicationBlocked, By: actorName(ctx), At: s.Now(),
		})
		if errors.Is(err, storage.ErrFull) {
			return fault(ErrConflict, "there are %s that are paused or blocked, and no more are possible: end some",
				label.Count(storage.MaxHolds, "application", "applications"))
		}
		return err
	})
	if err == nil {
		v.State, v.HeldBy, v.HeldAt = state, actorName(ctx), s.Now()
	}
	return v, err
}

func (s *Service) unblockApplication(ctx context.Context, in ApplicationID) (Application, error) {
	return s.release(ctx, in, "unblocked", applicationBlocked)
}

func (s *Service) resumeApplication(ctx context.Context, in ApplicationID) (Application, error) {
	return s.release(ctx, in, "resumed", applicationPaused)
}

func (s *Service) release(ctx context.Context, in ApplicationID, what, from string) (Application, error) {
	v, err := s.change(ctx, in.ID, what, func(a storage.FiledApplication) error {
		if a.Hold == nil || a.Hold.Blocked != (from == applicationBlocked) {
			return fault(ErrConflict, "%q is not %s; see: mcp-authd application list", cmp.Or(a.Name, a.Key), from)
		}
		return s.Store.ReleaseApplication(ctx, a.Key)
	})
	if err == nil {
		v.State, v.HeldBy, v.HeldAt = applicationActive, "", time.Time{}
	}
	return v, err
}

func (s *Service) deleteApplication(ctx context.Context, in ApplicationID) (Application, error) {
	return s.change(ctx, in.ID, "deleted", func(a storage.FiledApplication) error {
		if a.Source == storage.SourceConfig {
			return fault(ErrConflict, "%q is in the configuration: remove it there, or block it", cmp.Or(a.Name, a.Key))
		}
		return s.Store.DeleteApplication(ctx, a.Key, s.Now())
	})
}

func (s *Service) mergeApplications(ctx context.Context, in ApplicationPair) (Application, error) {
	into, err := s.findApplication(ctx, in.Into)
	if err != nil {
		return Application{}, err
	}
	if err := s.notOwn(ctx, into); err != nil {
		return Application{}, err
	}
	_, err = s.change(ctx, in.ID, "merged", func(a storage.FiledApplication) error {
		if a.Key == into.Key {
			return fault(ErrConflict, "%q and %q are one application already", in.ID, in.Into)
		}
		err := s.Store.MergeApplications(ctx, a.Key, into.Key, s.Now())
		switch {
		case errors.Is(err, storage.ErrExists):
			return fault(ErrConflict, "%q or %q counts as another application already; split it first", in.ID, in.Into)
		case errors.Is(err, storage.ErrMismatch):
			return fault(ErrConflict, "one of the two is paused or blocked, and the other is not: make them alike first")
		}
		return err
	})
	if err != nil {
		return Application{}, err
	}
	merged, err := s.Store.FiledApplication(ctx, into.Key)
	if errors.Is(err, storage.ErrNotFound) {
		merged, err = into, nil
	}
	if err != nil {
		return Application{}, err
	}
	return s.viewApplication(ctx, merged)
}

func (s *Service) splitApplication(ctx context.Context, in ApplicationID) (Application, error) {
	return s.change(ctx, in.ID, "split", func(storage.FiledApplication) error {
		err := s.Store.SplitApplication(ctx, in.ID, s.Now())
		if errors.Is(err, storage.ErrNotFound) {
			return fault(ErrNotFound, "%q does not count as another application; application show lists what does by its id", in.ID)
		}
		return err
	})
}
