package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putProposal = "INSERT INTO proposals (" + column.ProposalColumns + ")" +
		" SELECT $1,$2,$3,$4,$5,$6,$7,$8::bigint,$9::bigint,$10,$11,$12,$13,$14::bigint" +
		" WHERE (SELECT count(*) FROM proposals WHERE state = $15 AND expires_at > $16) < $17"
	readProposal   = "SELECT " + column.ProposalColumns + " FROM proposals WHERE id = $1 AND expires_at > $2"
	listProposals  = "SELECT " + column.ProposalColumns + " FROM proposals WHERE id > $1 AND expires_at > $2 ORDER BY id LIMIT $3"
	decideProposal = "UPDATE proposals SET state = $3, decided_user = $4, decided_name = $5, decided_client = $6," +
		" decided_at = $7 WHERE id = $1 AND state = $2 AND expires_at > $7 RETURNING " + column.ProposalColumns
)

func proposal(row pgx.CollectableRow) (storage.Proposal, error) { return column.ReadProposal(row) }

func oneProposal(ctx context.Context, q querier, query string, args ...any) (storage.Proposal, error) {
	found, err := each(ctx, q, proposal, query, args...)
	if err == nil && len(found) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return storage.Proposal{}, err
	}
	return found[0], nil
}

// PutProposal implements storage.Proposals.
func (s *Store) PutProposal(ctx context.Context, p storage.Proposal, now time.Time) error {
	return s.do(ctx, "PutProposal", func(ctx context.Context, q querier) error {
		return changed(storage.ErrFull)(exec(ctx, q, putProposal, append(column.ProposalValues(p),
			string(storage.ProposalOpen), column.Millis(now), storage.MaxProposals)...))
	})
}

// Proposal implements storage.Proposals.
func (s *Store) Proposal(ctx context.Context, id string, now time.Time) (p storage.Proposal, err error) {
	err = s.do(ctx, "Proposal", func(ctx context.Context, q querier) (err error) {
		p, err = oneProposal(ctx, q, readProposal, id, column.Millis(now))
		return err
	})
	return p, err
}

// ListProposals implements storage.Proposals.
func (s *Store) ListProposals(
	ctx context.Context, after string, limit int, now time.Time,
) (out []storage.Proposal, err error) {
	err = s.do(ctx, "ListProposals", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, proposal, listProposals, after, column.Millis(now), max(limit, 0))
		return err
	})
	return out, err
}

// DecideProposal implements storage.Proposals.
func (s *Store) DecideProposal(
	ctx context.Context, id string, d storage.ProposalDecision,
) (p storage.Proposal, err error) {
	err = s.do(ctx, "DecideProposal", func(ctx context.Context, q querier) (err error) {
		p, err = oneProposal(ctx, q, decideProposal, id, string(storage.ProposalOpen), string(d.State), d.By.UserID,
			d.By.Name, d.By.ClientID, column.Millis(d.At))
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if _, err = oneProposal(ctx, q, readProposal, id, column.Millis(d.At)); err == nil {
			err = storage.ErrSpent
		}
		return err
	})
	return p, err
}
