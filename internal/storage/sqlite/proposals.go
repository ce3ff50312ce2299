package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putProposal = "INSERT INTO proposals (" + column.ProposalColumns + ") SELECT ?,?,?,?,?,?,?,?,?,?,?,?,?,?" +
		" WHERE (SELECT count(*) FROM proposals WHERE state = ? AND expires_at > ?) < ?"
	readProposal   = "SELECT " + column.ProposalColumns + " FROM proposals WHERE id = ? AND expires_at > ?"
	listProposals  = "SELECT " + column.ProposalColumns + " FROM proposals WHERE id > ? AND expires_at > ? ORDER BY id LIMIT ?"
	decideProposal = "UPDATE proposals SET state = ?3, decided_user = ?4, decided_name = ?5, decided_client = ?6," +
		" decided_at = ?7 WHERE id = ?1 AND state = ?2 AND expires_at > ?7 RETURNING " + column.ProposalColumns
)

func proposal(row scanner) (storage.Proposal, error) { return column.ReadProposal(row) }

func oneProposal(c *conn, query string, args ...any) (storage.Proposal, error) {
	found, err := each(c, proposal, query, args...)
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
	return s.write(ctx, "PutProposal", func(c *conn) error {
		return changed(storage.ErrFull)(c.exec(putProposal, append(column.ProposalValues(p),
			string(storage.ProposalOpen), column.Millis(now), storage.MaxProposals)...))
	})
}

// Proposal implements storage.Proposals.
func (s *Store) Proposal(ctx context.Context, id string, now time.Time) (p storage.Proposal, err error) {
	err = s.read(ctx, "Proposal", func(c *conn) (err error) {
		p, err = oneProposal(c, readProposal, id, column.Millis(now))
		return err
	})
	return p, err
}

// ListProposals implements storage.Proposals.
func (s *Store) ListProposals(
	ctx context.Context, after string, limit int, now time.Time,
) (out []storage.Proposal, err error) {
	err = s.read(ctx, "ListProposals", func(c *conn) (err error) {
		out, err = each(c, proposal, listProposals, after, column.Millis(now), max(limit, 0))
		return err
	})
	return out, err
}

// DecideProposal implements storage.Proposals.
func (s *Store) DecideProposal(
	ctx context.Context, id string, d storage.ProposalDecision,
) (p storage.Proposal, err error) {
	err = s.write(ctx, "DecideProposal", func(c *conn) (err error) {
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
