package portable

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putProposal = "INSERT INTO proposals (" + column.ProposalColumns + ")" +
		" SELECT $1,$2,$3,$4,$5,$6,$7,CAST($8 AS bigint),CAST($9 AS bigint),$10,$11,$12,$13,CAST($14 AS bigint)" +
		" WHERE (SELECT count(*) FROM proposals WHERE state = $15 AND expires_at > $16) < $17"
	readProposal   = "SELECT " + column.ProposalColumns + " FROM proposals WHERE id = $1 AND expires_at > $2"
	listProposals  = "SELECT " + column.ProposalColumns + " FROM proposals WHERE id > $1 AND expires_at > $2 ORDER BY id LIMIT $3"
	decideProposal = "UPDATE proposals SET state = $3, decided_user = $4, decided_name = $5, decided_client = $6," +
		" decided_at = $7 WHERE id = $1 AND state = $2 AND expires_at > $7 RETURNING " + column.ProposalColumns
)

// proposals implements storage.Proposals.
type proposals struct{ db Engine }

// PutProposal implements storage.Proposals.
func (s proposals) PutProposal(ctx context.Context, p storage.Proposal, now time.Time) error {
	return s.db.Write(ctx, "PutProposal", func(c Conn) error {
		return changed(storage.ErrFull)(c.Exec(putProposal, append(column.ProposalValues(p),
			string(storage.ProposalOpen), column.Millis(now), storage.MaxProposals)...))
	})
}

// Proposal implements storage.Proposals.
func (s proposals) Proposal(ctx context.Context, id string, now time.Time) (p storage.Proposal, err error) {
	err = s.db.Read(ctx, "Proposal", func(c Conn) (err error) {
		p, err = oneProposal(c, readProposal, id, column.Millis(now))
		return err
	})
	return p, err
}

// ListProposals implements storage.Proposals.
func (s proposals) ListProposals(
	ctx context.Context, after string, limit int, now time.Time,
) (out []storage.Proposal, err error) {
	err = s.db.Read(ctx, "ListProposals", func(c Conn) (err error) {
		out, err = Each(c, column.ReadProposal, listProposals, after, column.Millis(now), max(limit, 0))
		return err
	})
	return out, err
}

// DecideProposal implements storage.Proposals.
func (s proposals) DecideProposal(
	ctx context.Context, id string, d storage.ProposalDecision,
) (p storage.Proposal, err error) {
	err = s.db.Write(ctx, "DecideProposal", func(c Conn) (err error) {
		p, err = oneProposal(c, decideProposal, id, string(storage.ProposalOpen), string(d.State), d.By.UserID,
			d.By.Name, d.By.ClientID, column.Millis(d.At))
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if _, err = oneProposal(c, readProposal, id, column.Millis(d.At)); err == nil {
			err = storage.ErrSpent
		}
		return err
	})
	return p, err
}

func oneProposal(c Conn, query string, args ...any) (storage.Proposal, error) {
	found, err := Each(c, column.ReadProposal, query, args...)
	if err == nil && len(found) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return storage.Proposal{}, err
	}
	return found[0], nil
}
