package admin

import (
	"context"
	"reflect"
)

// May returns ErrForbidden for an operation that Call would refuse this actor, by the role or by the thing that
// the input names. It does not ask for a fresh proof, and changes nothing. In is a pointer to an input of the verb.
// Errors: also those that Call returns while it looks at the thing.
func (s *Service) May(ctx context.Context, a Actor, v Verb, in any) error {
	if !v.Spec().Permits(a.Role) {
		return ErrForbidden
	}
	if !v.Spec().Changes() {
		return nil
	}
	ctx = context.WithValue(ctx, actorKey{}, a)
	if err := s.mayTouch(ctx, v, reflect.ValueOf(in).Elem()); err != nil {
		return err
	}
	id, ok := in.(*ProposalID)
	if !ok {
		return nil
	}
	p, err := s.findProposal(ctx, id.ID)
	if err != nil {
		return err
	}
	if v.Spec().Name == ProposalAccept.Spec().Name {
		_, _, err = s.acceptable(ctx, p, a)
		return err
	}
	return s.mayDecline(ctx, p, a)
}
