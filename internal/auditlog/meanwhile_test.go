package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// meanwhile is a store that calls each function once, just before or after the matching read.
type meanwhile struct {
	storage.Store
	beforeCheckpoints, beforeEntries, afterFirstRead func()
	failsToPut, failsToRead                          error
}

func once(happens *func()) {
	if f := *happens; f != nil {
		*happens = nil
		f()
	}
}

func (m *meanwhile) Checkpoints(ctx context.Context, after int64, limit int) ([]storage.AuditCheckpoint, error) {
	once(&m.beforeCheckpoints)
	return m.Store.Checkpoints(ctx, after, limit)
}

func (m *meanwhile) AuditEntries(ctx context.Context, q storage.AuditQuery) ([]storage.AuditEntry, error) {
	once(&m.beforeEntries)
	return m.Store.AuditEntries(ctx, q)
}

func (m *meanwhile) AuditHead(ctx context.Context, writer string) (storage.AuditHead, error) {
	defer once(&m.afterFirstRead)
	return m.Store.AuditHead(ctx, writer)
}

func (m *meanwhile) LastCheckpoint(ctx context.Context) (storage.AuditCheckpoint, error) {
	defer once(&m.afterFirstRead)
	return m.Store.LastCheckpoint(ctx)
}

func (m *meanwhile) PutCheckpoint(ctx context.Context, c storage.AuditCheckpoint) error {
	if m.failsToPut != nil {
		return m.failsToPut
	}
	return m.Store.PutCheckpoint(ctx, c)
}

func (m *meanwhile) AuditTiles(ctx context.Context, level int, from int64, n int) ([]storage.AuditTile, error) {
	if m.failsToRead != nil {
		return nil, m.failsToRead
	}
	return m.Store.AuditTiles(ctx, level, from, n)
}

// TestVerifyMeanwhile: OB-04. Changes by servers during a check are not mistaken for an attack.
func TestVerifyMeanwhile(t *testing.T) {
	t.Run("the key is made, and the first checkpoint signed", func(t *testing.T) {
		db := onSQLite(t)
		write(t, db, 0, 10)
		key := func(ctx context.Context) (auditlog.Keys, error) {
			s, err := auditlog.Open(ctx, db, masters, "", time.Now())
			if errors.Is(err, storage.ErrNotFound) {
				return auditlog.Keys{}, nil
			}
			must(t, err)
			return auditlog.Keys{Public: s.Key(), Signer: s}, nil
		}
		store := &meanwhile{Store: db, beforeCheckpoints: func() { checkpoint(t, signer(t, db)) }}
		report, err := auditlog.Verify(t.Context(), store, key)
		if err != nil || report.Confirmed != 10 || report.Checkpoints != 1 {
			t.Errorf("got %+v, %v", report, err)
		}
	})
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	aging := func(t *testing.T) (*auditlog.Signer, *meanwhile) {
		db := onSQLite(t)
		sign := signer(t, db)
		aged(t, db, 10, now)
		checkpointAt(t, sign, now)
		return sign, &meanwhile{Store: db, beforeEntries: func() {
			if removed, err := removing(t, db, sign, 4*24*time.Hour, now); err != nil || removed != 50 {
				t.Errorf("%d removed, %v", removed, err)
			}
		}}
	}
	t.Run("old entries are removed", func(t *testing.T) {
		sign, store := aging(t)
		report, err := auditlog.Verify(t.Context(), store, keyOf(sign))
		if err != nil || report.Removed != 50 || report.Entries != 101 || report.Confirmed != 100 {
			t.Errorf("got %+v, %v", report, err)
		}
	})
	t.Run("old entries are removed from what is exported", func(t *testing.T) {
		sign, store := aging(t)
		var out bytes.Buffer
		lines := json.NewEncoder(&out)
		err := auditlog.Export(t.Context(), store, auditlog.Standing{}, func(l verify.Line) error {
			return lines.Encode(l)
		})
		must(t, err)
		log := verify.NewLog(sign.Key())
		if err := log.Read(&out); err != nil || log.Size() != 101 {
			t.Errorf("got %v, %d entries", err, log.Size())
		}
	})
	t.Run("an attacker removes entries, and says that they were old", func(t *testing.T) {
		db := onSQLite(t)
		sign := signer(t, db)
		aged(t, db, 10, now)
		checkpointAt(t, sign, now)
		store := &meanwhile{Store: db, beforeEntries: func() {
			db.exec(t, "DELETE FROM audit_entries WHERE idx < 50; UPDATE audit_head SET first_idx = 50")
		}}
		_, err := auditlog.Verify(t.Context(), store, keyOf(sign))
		var wrong *verify.Wrong
		if !errors.As(err, &wrong) || wrong.First != 0 || wrong.Last != 49 || errors.Is(err, auditlog.ErrUnchecked) {
			t.Errorf("got %v, want entries 0 to 49", err)
		}
	})
}

// TestVerifyUnread: OB-04. An unreadable store or key is not reported as a wrong log.
func TestVerifyUnread(t *testing.T) {
	db := onSQLite(t)
	write(t, db, 0, 10)
	away := errors.New("the database is away")
	sign := signer(t, db)
	for name, verified := range map[string]func() (auditlog.Report, error){
		"store": func() (auditlog.Report, error) {
			return auditlog.Verify(t.Context(), &meanwhile{Store: db, failsToRead: away}, keyOf(sign))
		},
		"key": func() (auditlog.Report, error) {
			return auditlog.Verify(t.Context(), db, func(context.Context) (auditlog.Keys, error) {
				return auditlog.Keys{}, away
			})
		},
	} {
		if _, err := verified(); !errors.Is(err, auditlog.ErrUnchecked) || !errors.Is(err, away) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := auditlog.Verify(t.Context(), db, keyOf(sign), []byte("no checkpoint")); err == nil ||
		errors.Is(err, auditlog.ErrUnchecked) {
		t.Errorf("a kept checkpoint that was not signed: got %v", err)
	}
}
