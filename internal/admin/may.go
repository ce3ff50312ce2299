package admin

import (
	"context"
	"reflect"
)

// May returns ErrForbidden if Call would refuse the operation because of the actor's role or the
// object that the input names. It does not require a recent authentication, and changes nothing. in
// is a pointer to an input of the verb. May also returns the errors that Call returns while it
// reads the object.
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
