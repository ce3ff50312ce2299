package auditlog

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Prove proves that an entry is in the log, with the consent for its grant, its token, and the
// clearance of its call (OB-05). An entry without a grant is proved alone.
func Prove(
	ctx context.Context, store Store, signer *Signer, e storage.AuditEntry, now time.Time,
) (verify.Proof, error) {
	chain, err := chainOf(ctx, store, e)
	if err != nil {
		return verify.Proof{}, err
	}
	signed, err := signer.Checkpoint(ctx, now)
	if err != nil {
		return verify.Proof{}, err
	}
	out := verify.Proof{Log: signer.Name(), Checkpoint: string(signed.Signed)}
	if out.Removed, err = consentRemoved(ctx, store, chain); err != nil {
		return verify.Proof{}, err
	}
	approved := slices.ContainsFunc(chain, func(e storage.AuditEntry) bool { return e.Event == audit.ConsentApproved })
	out.Unapproved = e.Grant != "" && !approved && !out.Removed
	read := readStored(ctx, store)
	for _, e := range chain {
		p, err := tlog.ProveRecord(signed.Size, e.Index, read)
		if err != nil {
			return verify.Proof{}, err
		}
		out.Entries = append(out.Entries, verify.Proved{Index: e.Index, Leaf: string(e.Leaf), Proof: p})
	}
	if _, err := out.Open(signer.Key()); err != nil { // the store may have been changed
		return verify.Proof{}, errors.Join(ErrInconsistent, err)
	}
	return out, nil
}

// lookedAt limits the search for a call's token to the last ones of the grant. A token lives for
// minutes, and a client gets few in that time.
const lookedAt = 100

// chainOf returns an entry with the consent for its grant, its token and the clearance of its call,
// sorted by index. If the entry names no token, chainOf takes the last earlier one; if the named
// one is not found, the last one without an id.
func chainOf(ctx context.Context, store storage.AuditLog, e storage.AuditEntry) ([]storage.AuditEntry, error) {
	chain := []storage.AuditEntry{e}
	if e.Grant == "" || e.Index == 0 {
		return chain, nil
	}
	token, clearance := field(e, "jti"), field(e, "clearance")
	find := func(q storage.AuditQuery, fits func(storage.AuditEntry) bool, events ...string) error {
		var found []storage.AuditEntry
		for _, event := range events {
			q.Below, q.Grant, q.Event = e.Index, e.Grant, event
			some, err := store.AuditEntries(ctx, q)
			if err != nil {
				return err
			}
			found = append(found, slices.DeleteFunc(some, func(e storage.AuditEntry) bool { return !fits(e) })...)
		}
		if len(found) > 0 {
			chain = append(chain, slices.MaxFunc(found, byIndex))
		}
		return nil
	}
	any := func(storage.AuditEntry) bool { return true }
	if err := find(storage.AuditQuery{Limit: 1}, any, audit.ConsentApproved); err != nil {
		return nil, err
	}
	last, own := storage.AuditQuery{Last: true, Limit: 1}, any
	if token != "" {
		last.Limit = lookedAt
		own = func(t storage.AuditEntry) bool { return field(t, "jti") == token }
	}
	tokens := []string{audit.TokenIssued, audit.TokenRefreshed, audit.TokenReplayed, audit.TokenRecovered}
	before := len(chain)
	if err := find(last, own, tokens...); err != nil {
		return nil, err
	}
	if token != "" && len(chain) == before {
		unnamed := func(t storage.AuditEntry) bool { return field(t, "jti") == "" }
		if err := find(last, unnamed, tokens...); err != nil {
			return nil, err
		}
	}
	if clearance != "" {
		given := func(c storage.AuditEntry) bool { return field(c, "clearance") == clearance }
		last.Limit = lookedAt
		if err := find(last, given, audit.ClearanceGiven); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(chain, byIndex)
	return chain, nil
}

// consentRemoved reports whether a chain lacks the approval because the grant is older than all
// entries left in the log.
func consentRemoved(ctx context.Context, store storage.AuditLog, chain []storage.AuditEntry) (bool, error) {
	made, known := secrets.TimeOf(chain[len(chain)-1].Grant)
	approved := func(e storage.AuditEntry) bool { return e.Event == audit.ConsentApproved }
	if !known || slices.ContainsFunc(chain, approved) {
		return false, nil
	}
	head, err := store.AuditHead(ctx, "")
	if err != nil || head.First == 0 {
		return false, err
	}
	oldest, err := store.AuditEntries(ctx, storage.AuditQuery{From: head.First, Limit: 1})
	return len(oldest) > 0 && made.Before(oldest[0].At), err
}

// field returns a field of an entry, or "" if the entry lacks it or cannot be read.
func field(e storage.AuditEntry, name string) string {
	read, err := verify.ParseEntry(e.Leaf)
	if err != nil {
		return ""
	}
	return read.Fields[name]
}

func byIndex(a, b storage.AuditEntry) int { return int(a.Index - b.Index) }
