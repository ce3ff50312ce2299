package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// unsignedFor is how old unsigned entries may be. A server signs once a minute.
const unsignedFor = 2 * time.Minute

// AuditFindings reports whether the audit log is signed, and otherwise why not (EN-09).
func (s *Service) AuditFindings(ctx context.Context) (f findings, _ error) {
	if s.Store == nil || s.AuditChecker == nil {
		return nil, nil
	}
	head, err := s.Store.AuditHead(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("the audit log cannot be read: %w", err)
	}
	signer, err := s.AuditChecker(ctx)
	if err == nil {
		err = signer.Look(ctx, s.Now())
	}
	begun := !errors.Is(err, storage.ErrNotFound)
	switch {
	case errors.Is(err, auditlog.ErrInconsistent):
		f.add("audit", LevelFail, "keep a copy of the database, and run: mcp-authd audit verify",
			"it is not signed any more: %s", reason(err))
		return f, nil
	case err != nil && begun:
		return nil, fmt.Errorf("the audit log cannot be checked: %w", err)
	}
	if err := s.lostEntries(ctx, &f); err != nil {
		return nil, err
	}
	since, err := s.unsigned(ctx, head)
	if err != nil {
		return nil, err
	}
	switch {
	case !since.IsZero():
		f.add("audit", LevelWarning, "a server signs once a minute: look in its log for why it did not",
			"entries from %s on are not signed", since.UTC().Format(time.RFC3339))
	case begun:
		f.add("audit", LevelOK, "", "%s, and signed", label.Count(head.Size, "entry is in it", "entries are in it"))
	}
	return f, nil
}

// lostFor is how long lost entries are reported.
const lostFor = 30 * 24 * time.Hour

// lostEntries reports the most recent loss of entries (OP-01).
func (s *Service) lostEntries(ctx context.Context, f *findings) error {
	told, err := s.Store.AuditEntries(ctx, storage.AuditQuery{
		Event: audit.AuditLost, Since: s.Now().Add(-lostFor), Last: true, Limit: 1,
	})
	if err != nil || len(told) == 0 {
		return err
	}
	e, err := verify.ParseEntry(told[0].Leaf)
	if err != nil {
		return err
	}
	f.add("audit", LevelWarning, "look for audit.lost in the audit log, and at the database at that time",
		"entries were lost, the last of them at %s: %s", e.At.UTC().Format(time.RFC3339), e.Fields["entries"])
	return nil
}

// reason returns what differs from the signed state.
func reason(err error) string {
	why := strings.ReplaceAll(err.Error(), "\n", ": ")
	return strings.TrimPrefix(why, auditlog.ErrInconsistent.Error()+": ")
}

// unsigned returns the time of the oldest entry whose signature is overdue, or the zero time.
func (s *Service) unsigned(ctx context.Context, head storage.AuditHead) (time.Time, error) {
	signed, err := s.Store.LastCheckpoint(ctx)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return time.Time{}, err
	}
	due := s.Now().Add(-unsignedFor)
	if head.Size <= signed.Size || signed.At.After(due) {
		return time.Time{}, nil
	}
	oldest, err := s.Store.AuditEntries(ctx, storage.AuditQuery{From: signed.Size, Limit: 1})
	if err != nil || len(oldest) == 0 || oldest[0].At.After(due) {
		return time.Time{}, err
	}
	return oldest[0].At, nil
}
