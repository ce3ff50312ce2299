package auditlog

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Prove walks from an entry by its grant to the token before it and to the consent, and proves that each
// of them is in the log (OB-05). An entry without a grant is proved alone.
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
	read := readStored(ctx, store)
	for _, e := range chain {
		p, err := tlog.ProveRecord(signed.Size, e.Index, read)
		if err != nil {
			return verify.Proof{}, err
		}
		out.Entries = append(out.Entries, verify.Proved{Index: e.Index, Leaf: string(e.Leaf), Proof: p})
	}
	if _, err := out.Open(signer.Key()); err != nil { // what the store says may have been changed
		return verify.Proof{}, errors.Join(ErrInconsistent, err)
	}
	return out, nil
}

// chainOf is the consent of the grant of an entry, the last token of the grant before it, and the entry,
// by index.
func chainOf(ctx context.Context, store storage.AuditLog, e storage.AuditEntry) ([]storage.AuditEntry, error) {
	chain := []storage.AuditEntry{e}
	if e.Grant == "" || e.Index == 0 {
		return chain, nil
	}
	add := func(last bool, events ...string) error {
		var found []storage.AuditEntry
		for _, event := range events {
			some, err := store.AuditEntries(ctx, storage.AuditQuery{
				Below: e.Index, Grant: e.Grant, Event: event, Last: last, Limit: 1,
			})
			if err != nil {
				return err
			}
			found = append(found, some...)
		}
		if len(found) > 0 {
			chain = append(chain, slices.MaxFunc(found, byIndex))
		}
		return nil
	}
	if err := add(false, audit.ConsentApproved); err != nil {
		return nil, err
	}
	err := add(true, audit.TokenIssued, audit.TokenRefreshed, audit.TokenReplayed, audit.TokenRecovered)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(chain, byIndex)
	return chain, nil
}

func byIndex(a, b storage.AuditEntry) int { return int(a.Index - b.Index) }
