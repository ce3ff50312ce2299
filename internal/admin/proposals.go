package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// ProposalLife is how long a proposal stays open.
const ProposalLife = 24 * time.Hour

// maxOwnProposals limits the open proposals of one user or program.
const maxOwnProposals = 20

// maxProposed limits the input of a proposal, in bytes.
const maxProposed = 64 << 10

// sealedInputs is the purpose of the key that encrypts the inputs of proposals.
const sealedInputs = "inputs of proposals"

// Proposal is an operation that waits for a second administrator.
type Proposal struct {
	ID        string          `json:"id"`
	Operation string          `json:"operation" jsonschema:"operation to carry out on acceptance"`
	Input     json.RawMessage `json:"input" jsonschema:"its input, without secrets"`
	About     string          `json:"about,omitempty" jsonschema:"display name of the subject; absent if it does not exist yet"`
	By        Party           `json:"by" jsonschema:"who proposed it"`
	CreatedAt time.Time       `json:"created_at"`
	ExpiresAt time.Time       `json:"expires_at"`
	State     string          `json:"state" jsonschema:"open, accepted or declined"`
	Decided   Party           `json:"decided_by,omitzero" jsonschema:"who accepted or declined it"`
	DecidedAt time.Time       `json:"decided_at,omitzero"`
}

// Party is a user or a program.
type Party struct {
	User       string `json:"user,omitempty" jsonschema:"name of the account at that time; absent for a program"`
	UserID     string `json:"user_id,omitempty"`
	Client     string `json:"client,omitempty" jsonschema:"application that they used; absent for a browser"`
	ClientName string `json:"client_name,omitempty"`
}

// ProposalID names a proposal.
type ProposalID struct {
	ID string `json:"id" jsonschema:"the id of the proposal, prp_..."`
}

// Accepted is an accepted proposal, with the output of its operation.
type Accepted struct {
	Proposal
	Output any `json:"output,omitempty" jsonschema:"result of the operation; any secret is shown only once"`
}

// ProposedError is returned if an operation needs two administrators and now waits for the second.
type ProposedError struct{ Proposal Proposal }

func (e *ProposedError) Error() string {
	return fmt.Sprintf("proposed: %s, another administrator has to accept it: mcp-authd proposal accept %s",
		e.Proposal.ID, e.Proposal.ID)
}

// Operations on proposals.
var (
	ProposalList = define(Spec{
		Name: "proposal list", Method: "GET", Path: "/proposals", Roles: readers,
		Summary: "List the open and decided proposals of the last 24 hours",
		Details: "Lists the proposals of the last 24 hours for operations in console.two_administrators: open,\n" +
			"accepted and declined.",
	}, (*Service).listProposals)
	ProposalShow = define(Spec{
		Name: "proposal show", Method: "GET", Path: "/proposals/{id}", Roles: readers, Summary: "Show a proposal",
	}, (*Service).showProposal)
	ProposalAccept = define(Spec{
		Name: "proposal accept", Method: "POST", Path: "/proposals/{id}/accept",
		Roles: helping, Fresh: true, Secret: true,
		Summary: "Accept another administrator's proposal and carry it out",
		Details: "Carries out the proposed operation, once. You must be allowed to use the operation, and must not\n" +
			"have proposed it yourself. It is refused if its subject has changed since, or if the proposer may no\n" +
			"longer use the operation. A command with direct access to the database needs no second\n" +
			"administrator, and cannot accept proposals.",
	}, (*Service).acceptProposal)
	ProposalDecline = define(Spec{
		Name: "proposal decline", Method: "POST", Path: "/proposals/{id}/decline", Roles: helping,
		Summary: "Decline another administrator's proposal, or withdraw your own",
	}, (*Service).declineProposal)
)

// partyOf returns the actor in the form that a proposal stores.
func partyOf(a Actor) storage.Party {
	return storage.Party{UserID: a.UserID, Name: a.Name, ClientID: a.ClientID}
}

// propose stores an operation for a second administrator. It returns a [*ProposedError] on success.
func (s *Service) propose(ctx context.Context, a Actor, v Verb, in any) error {
	input, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if len(input) > maxProposed {
		return fault(ErrInvalid, "the input of a proposal must have at most 64 KiB")
	}
	if s.Operations.Named(v.Spec().Name) == nil { // nobody could accept it
		return fmt.Errorf("admin: proposals cannot name %q", v.Spec().Name)
	}
	thing, err := s.thing(ctx, v, reflect.ValueOf(in).Elem())
	if err != nil {
		return err
	}
	ring, err := s.Ring()
	if err != nil {
		return err
	}
	now, name := s.Now(), v.Spec().Name
	p := storage.Proposal{
		ID: secrets.ID("prp_"), Operation: name, Thing: thing, By: partyOf(a),
		CreatedAt: now, ExpiresAt: now.Add(ProposalLife), State: storage.ProposalOpen,
	}
	p.Input = ring.Seal(sealedInputs, input, bindingOf(p))
	if err := s.putProposal(ctx, p); err != nil {
		return err
	}
	s.Audit.Record(ctx, audit.ProposalMade, slog.String("proposal", p.ID), slog.String("what", name))
	view, err := s.viewProposal(ctx, s.Names(), p)
	if err != nil {
		return err
	}
	return &ProposedError{view}
}

// putProposal stores a proposal unless too many are open. It also limits the open proposals of one
// proposer, who could otherwise keep all others from proposing.
func (s *Service) putProposal(ctx context.Context, p storage.Proposal) error {
	return s.Alone(ctx, "proposals", func(ctx context.Context) error {
		own, after := 0, ""
		for {
			found, err := s.Store.ListProposals(ctx, after, MaxPage, p.CreatedAt)
			if err != nil {
				return err
			}
			for _, other := range found {
				if other.State == storage.ProposalOpen && sameParty(other.By, p.By) {
					own++
				}
				after = other.ID
			}
			if len(found) < MaxPage {
				break
			}
		}
		if own >= maxOwnProposals {
			return fault(ErrConflict, "%s open: decline some, see: mcp-authd proposal list",
				label.Count(own, "proposal of yours is", "proposals of yours are"))
		}
		err := s.Store.PutProposal(ctx, p, p.CreatedAt)
		if errors.Is(err, storage.ErrFull) {
			return fault(ErrConflict, "%s open: accept or decline some, see: mcp-authd proposal list",
				label.Count(storage.MaxProposals, "proposal is", "proposals are"))
		}
		return err
	})
}

// sameParty reports whether two parties are the same user, through any application, or the same
// program.
func sameParty(a, b storage.Party) bool {
	return a.UserID == b.UserID && (a.UserID != "" || a.ClientID == b.ClientID)
}

// bindingOf returns the associated data for the encrypted input.
func bindingOf(p storage.Proposal) []byte { return []byte(p.ID + "\x00" + p.Operation) }

func (s *Service) openInput(p storage.Proposal) ([]byte, error) {
	ring, err := s.Ring()
	if err != nil {
		return nil, err
	}
	return ring.Open(sealedInputs, p.Input, bindingOf(p))
}

func (s *Service) listProposals(ctx context.Context, in Paging) (out Page[Proposal], err error) {
	found, err := s.Store.ListProposals(ctx, in.After, in.bounded()+1, s.Now())
	if err != nil {
		return out, err
	}
	views, names := make([]Proposal, len(found)), s.Names()
	for i, p := range found {
		if views[i], err = s.viewProposal(ctx, names, p); err != nil {
			return out, err
		}
	}
	same, id := func(p Proposal) Proposal { return p }, func(p Proposal) string { return p.ID }
	return page(views, in.bounded(), same, id), nil
}

func (s *Service) showProposal(ctx context.Context, in ProposalID) (Proposal, error) {
	p, err := s.findProposal(ctx, in.ID)
	if err != nil {
		return Proposal{}, err
	}
	return s.viewProposal(ctx, s.Names(), p)
}

func (s *Service) findProposal(ctx context.Context, id string) (storage.Proposal, error) {
	p, err := s.Store.Proposal(ctx, id, s.Now())
	if errors.Is(err, storage.ErrNotFound) {
		err = fault(ErrNotFound, "there is no proposal %q, or its 24 hours are over; see: mcp-authd proposal list", id)
	}
	return p, err
}
