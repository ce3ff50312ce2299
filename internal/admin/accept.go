package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func (s *Service) acceptProposal(ctx context.Context, in ProposalID) (out Accepted, err error) {
	p, err := s.findProposal(ctx, in.ID)
	if err != nil {
		return out, err
	}
	a, ok := ctx.Value(actorKey{}).(Actor)
	if !ok {
		return out, fault(ErrForbidden, "who has the database needs no second administrator: run %s", p.Operation)
	}
	v, input, err := s.acceptable(ctx, p, a)
	if err != nil {
		return out, err
	}
	done := reflect.New(v.Output())
	err = s.Alone(ctx, s.Thing(ctx, v.Spec(), input.Interface()), func(ctx context.Context) error {
		p, err = s.carryOut(ctx, p, v, input, done)
		return err
	})
	if err != nil {
		return out, err
	}
	out.Proposal, err = s.viewProposal(ctx, s.Names(), p)
	out.Output = done.Elem().Interface()
	return out, err
}

// carryOut runs the operation of a proposal if its object has not changed since the proposal was
// made.
func (s *Service) carryOut(
	ctx context.Context, p storage.Proposal, v Verb, in, out reflect.Value,
) (storage.Proposal, error) {
	thing, err := s.thing(ctx, v, in.Elem())
	if errors.Is(err, ErrNotFound) || err == nil && thing != p.Thing {
		err = fault(ErrConflict, "what this is about has changed since it was proposed: look at it, and propose it again")
	}
	if err == nil {
		err = s.mayTouch(ctx, v, in.Elem()) // before decide: a refusal must not use the proposal up
	}
	if err != nil {
		return p, err
	}
	a, _ := ctx.Value(actorKey{}).(Actor)
	if p, err = s.decide(ctx, p.ID, storage.ProposalAccepted, partyOf(a)); err != nil {
		return p, err
	}
	request.Of(ctx).Note(slog.String("proposal", p.ID), slog.String("proposed_by", p.By.Name),
		slog.String("proposed_client", p.By.ClientID))
	outcome, ctx := "done", context.WithValue(ctx, proposedKey{}, p.By)
	if err = v.run(ctx, s, in.Interface(), out.Interface()); err != nil {
		outcome = "failed"
	}
	s.Audit.Record(ctx, audit.ProposalAccepted, slog.String("what", p.Operation), slog.String("outcome", outcome))
	return p, err
}

// acceptable returns the operation of a proposal that an actor may accept, with its input.
func (s *Service) acceptable(ctx context.Context, p storage.Proposal, a Actor) (Verb, reflect.Value, error) {
	no := reflect.Value{}
	v := s.Operations.Named(p.Operation)
	switch {
	case v == nil:
		return nil, no, fault(ErrConflict, "this server has no operation %q", p.Operation)
	case a.Program:
		return nil, no, fault(ErrForbidden, "a program accepts no proposal: a person does")
	}
	in, err := s.decidable(ctx, p, v, a)
	if err != nil {
		return nil, no, err
	}
	if err := s.another(ctx, p, a); err != nil {
		return nil, no, err
	}
	return v, in, s.stillMay(ctx, p, v, in.Elem())
}

// decidable returns the input of a proposal that an actor may accept or decline: the actor must be
// permitted to run the proposed operation on its object.
func (s *Service) decidable(ctx context.Context, p storage.Proposal, v Verb, a Actor) (in reflect.Value, err error) {
	if !v.Spec().Permits(a.Role) {
		return in, ErrForbidden
	}
	raw, err := s.openInput(p)
	if err != nil {
		return in, err
	}
	in = reflect.New(v.Input())
	if err := json.Unmarshal(raw, in.Interface()); err != nil {
		return in, err
	}
	return in, s.mayTouch(ctx, v, in.Elem())
}

// stillMay returns an error if the proposer may no longer run the proposed operation.
func (s *Service) stillMay(ctx context.Context, p storage.Proposal, v Verb, in reflect.Value) error {
	by, gone := p.By, fault(ErrConflict, "who proposed this may not do it any more")
	if by.UserID == "" {
		return s.programStill(ctx, p)
	}
	u, err := s.Store.User(ctx, by.UserID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && !v.Spec().Permits(RoleOf(u)) {
		return gone
	}
	if err != nil {
		return err
	}
	proposer := context.WithValue(ctx, actorKey{}, Actor{UserID: u.ID, Role: RoleOf(u)})
	if err = s.mayTouch(proposer, v, in); errors.Is(err, ErrForbidden) {
		return gone
	}
	return err
}

// decide accepts or declines a proposal. A proposal can be decided once.
func (s *Service) decide(
	ctx context.Context, id string, state storage.ProposalState, by storage.Party,
) (storage.Proposal, error) {
	p, err := s.Store.DecideProposal(ctx, id, storage.ProposalDecision{State: state, By: by, At: s.Now()})
	switch {
	case errors.Is(err, storage.ErrSpent):
		err = fault(ErrConflict, "this was accepted or declined already; see: mcp-authd proposal show %s", id)
	case errors.Is(err, storage.ErrNotFound):
		err = fault(ErrNotFound, "the 24 hours of this proposal are over")
	}
	return p, err
}

func (s *Service) declineProposal(ctx context.Context, in ProposalID) (Proposal, error) {
	p, err := s.findProposal(ctx, in.ID)
	if err != nil {
		return Proposal{}, err
	}
	by := storage.Party{}
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		by = partyOf(a)
		if err := s.mayDecline(ctx, p, a); err != nil {
			return Proposal{}, err
		}
	}
	if p, err = s.decide(ctx, p.ID, storage.ProposalDeclined, by); err != nil {
		return Proposal{}, err
	}
	s.Audit.Record(ctx, audit.ProposalDeclined, slog.String("proposal", p.ID), slog.String("what", p.Operation),
		slog.String("proposed_by", p.By.Name), slog.String("proposed_client", p.By.ClientID))
	return s.viewProposal(ctx, s.Names(), p)
}

// mayDecline returns an error unless an actor may decline a proposal. The proposer may, and so may
// anyone who is permitted to run the operation on its object. If this version does not have the
// operation, anyone may decline.
func (s *Service) mayDecline(ctx context.Context, p storage.Proposal, a Actor) error {
	v := s.Operations.Named(p.Operation)
	if sameParty(partyOf(a), p.By) || v == nil {
		return nil
	}
	_, err := s.decidable(ctx, p, v, a)
	return err
}
