package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// holders records who can act through a client that was created here. It is stored in the client's
// metadata: users by account ID, programs by client ID. An empty list stands for the operator at
// the command line.
type holders struct {
	MadeBy   []string  `json:"made_by"`
	SecretBy []string  `json:"secret_by"` // who saw the current secret
	SecretAt time.Time `json:"secret_at"`
}

// holdersMember is the member of storage.Client.Metadata that contains the holders.
const holdersMember = "mcp_authd_holders"

// holdersOf returns who can act through a client. It returns false if that was not recorded,
// because an older version created the client.
func holdersOf(c storage.Client) (holders, bool) {
	var kept struct {
		Holders *holders `json:"mcp_authd_holders"`
	}
	if c.Source == storage.SourceConfig {
		return holders{}, true
	}
	if c.Source != storage.SourceStatic || len(c.Metadata) == 0 || json.Unmarshal(c.Metadata, &kept) != nil ||
		kept.Holders == nil {
		return holders{}, false
	}
	return *kept.Holders, true
}

// hold records who can act through a client.
func hold(c *storage.Client, h holders) error {
	members := map[string]json.RawMessage{}
	if len(c.Metadata) > 0 {
		if err := json.Unmarshal(c.Metadata, &members); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(h)
	if err != nil {
		return err
	}
	members[holdersMember] = raw
	c.Metadata, err = json.Marshal(members)
	return err
}

type proposedKey struct{}

// here returns the callers of an operation as a list of holders. With propose, it includes the
// proposer.
func (s *Service) here(ctx context.Context, propose bool) ([]string, error) {
	var out []string
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		all, err := s.persons(ctx, partyOf(a))
		if err != nil {
			return nil, err
		}
		out = all
	}
	if by, ok := ctx.Value(proposedKey{}).(storage.Party); ok && propose {
		all, err := s.persons(ctx, by)
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// persons returns everyone that a party counts as. This is the user or program, and all who created
// the application that it uses or hold its secret. An application that registered itself adds no
// one.
func (s *Service) persons(ctx context.Context, p storage.Party) ([]string, error) {
	out := []string{p.UserID}
	if p.UserID == "" {
		out = []string{p.ClientID}
	}
	c, found, err := s.actsBy(ctx, p)
	if err != nil || !found {
		return out, err
	}
	h, _ := holdersOf(c)
	return slices.Concat(out, h.MadeBy, h.SecretBy), nil
}

// actsBy returns the application of a party. It returns false without an application, or if it has
// no row.
func (s *Service) actsBy(ctx context.Context, p storage.Party) (storage.Client, bool, error) {
	if p.ClientID == "" {
		return storage.Client{}, false, nil
	}
	c, err := s.Store.Client(ctx, p.ClientID)
	switch {
	case errors.Is(err, storage.ErrRevoked):
		return c, false, fault(ErrConflict, "the application by which this was proposed was deleted")
	case errors.Is(err, storage.ErrNotFound):
		return c, false, nil
	}
	return c, err == nil, err
}

// another returns ErrForbidden if the user who accepts a proposal may be the same person as its
// proposer.
func (s *Service) another(ctx context.Context, p storage.Proposal, a Actor) error {
	if p.By.UserID != "" && p.By.UserID == a.UserID {
		return fault(ErrForbidden, "you proposed this yourself: another administrator must accept it")
	}
	proposers, err := s.persons(ctx, p.By)
	if err != nil {
		return err
	}
	own, err := s.persons(ctx, partyOf(a))
	if err != nil {
		return err
	}
	switch {
	case slices.Contains(proposers, a.UserID):
		return fault(ErrForbidden, "%s proposed this, which you made or whose secret you were shown: another administrator "+
			"has to accept it", p.By.ClientID)
	case slices.ContainsFunc(own, func(id string) bool { return slices.Contains(proposers, id) }):
		return fault(ErrForbidden, "who proposed this can act by the application that you use, %s: accept it in the console",
			a.ClientID)
	}
	return nil
}

// programStill returns an error if the program that made a proposal is gone, or may have a new
// owner.
func (s *Service) programStill(ctx context.Context, p storage.Proposal) error {
	registry, err := s.Registry()
	if err != nil {
		return err
	}
	c, err := registry.Current(ctx, p.By.ClientID)
	gone := errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrRevoked) || err == nil && !c.Operated()
	switch h, known := holdersOf(c); {
	case gone:
		return fault(ErrConflict, "who proposed this may not do it any more")
	case err != nil:
		return err
	case !known:
		return fault(ErrConflict, "an earlier version made the program that proposed this, and did not keep who holds its "+
			"secret: give it a new one (mcp-authd client rotate-secret %s), or make it again", c.ID)
	case h.SecretAt.After(p.CreatedAt):
		return fault(ErrConflict, "the program that proposed this has got a new secret since: have it propose again")
	}
	return nil
}
