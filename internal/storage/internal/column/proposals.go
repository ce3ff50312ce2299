package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// ProposalColumns are the columns of ReadProposal and ProposalValues, in order.
const ProposalColumns = "id, operation, input, thing, by_user, by_name, by_client, created_at, expires_at, state, " +
	"decided_user, decided_name, decided_client, decided_at"

// ReadProposal reads ProposalColumns.
func ReadProposal(row interface{ Scan(dest ...any) error }) (p storage.Proposal, err error) {
	var created, expires, decided int64
	err = row.Scan(&p.ID, &p.Operation, &p.Input, &p.Thing, &p.By.UserID, &p.By.Name, &p.By.ClientID,
		&created, &expires, &p.State, &p.Decided.UserID, &p.Decided.Name, &p.Decided.ClientID, &decided)
	p.CreatedAt, p.ExpiresAt = Time(created), Time(expires)
	if decided > 0 {
		p.DecidedAt = Time(decided)
	}
	return p, err
}

// ProposalValues returns the values of an open proposal.
func ProposalValues(p storage.Proposal) []any {
	return []any{
		p.ID, p.Operation, p.Input, p.Thing, p.By.UserID, p.By.Name, p.By.ClientID, Millis(p.CreatedAt),
		Millis(p.ExpiresAt), string(storage.ProposalOpen), "", "", "", int64(0),
	}
}
