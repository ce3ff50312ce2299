package admin

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// viewProposal returns the view of a proposal, with names for the IDs in it.
func (s *Service) viewProposal(ctx context.Context, names *Names, p storage.Proposal) (Proposal, error) {
	input, err := s.openInput(p)
	if err != nil {
		return Proposal{}, err
	}
	shown, err := withoutSecrets(s.Operations.Named(p.Operation), input)
	return Proposal{
		ID: p.ID, Operation: p.Operation, Input: shown, About: s.about(ctx, names, p.Operation, input),
		By: viewParty(ctx, names, p.By), CreatedAt: p.CreatedAt, ExpiresAt: p.ExpiresAt,
		State: string(p.State), Decided: viewParty(ctx, names, p.Decided), DecidedAt: p.DecidedAt,
	}, err
}

func viewParty(ctx context.Context, names *Names, p storage.Party) Party {
	out := Party{User: p.Name, UserID: p.UserID, Client: p.ClientID}
	if name := names.Client(ctx, p.ClientID); name != p.ClientID {
		out.ClientName = name
	}
	return out
}

// about returns the object in the path of an operation, by name and ID. An account that is gone or
// was replaced is shown as the input named it.
func (s *Service) about(ctx context.Context, names *Names, operation string, input []byte) string {
	v := s.Operations.Named(operation)
	var members map[string]any
	if v == nil || json.Unmarshal(input, &members) != nil {
		return ""
	}
	before, rest, _ := strings.Cut(v.Spec().Path, "{")
	field, _, _ := strings.Cut(rest, "}")
	given, _ := members[strings.TrimSuffix(field, "...")].(string)
	id, name := given, given
	switch {
	case given == "":
		return ""
	case before == "/users/":
		if u, err := s.Users.Find(ctx, given); err == nil {
			id, name = u.ID, u.Name
		}
	case before == "/clients/":
		name = names.Client(ctx, given)
	case before == "/grants/":
		if g, err := s.Store.Grant(ctx, given); err == nil {
			name = names.Holder(ctx, g)
		}
	}
	if name == id {
		return name
	}
	return name + " (" + id + ")"
}
